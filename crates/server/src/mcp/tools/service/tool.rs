//! `service`: servers and watchers by name (E).

use super::{begin, change, look};
use crate::mcp::context::Call;
use crate::mcp::tools::core::action::{self, Action};
use crate::mcp::tools::core::select::{CURSOR, GREP, TAIL};
use crate::mcp::tools::core::{WAIT_LIMIT_MS, unexplained};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::walls;
use crate::params::{Arguments, Kind, Parameter};

/// The longest time to become ready that can be asked for, in seconds: a day.
const READY_LIMIT_S: i64 = 24 * 60 * 60;

/// What a start takes.
const START: &[&str] = &[
    "name",
    "command",
    "script",
    "cwd",
    "env",
    "port",
    "ready_when",
    "ready_pattern",
    "timeout",
    "restart",
    "depends_on",
    "isolation",
    "wait_ms",
];
/// The same, as a definition.
const DEFINE: &[&str] = &[
    "command",
    "script",
    "cwd",
    "env",
    "port",
    "ready_when",
    "ready_pattern",
    "timeout",
    "restart",
    "depends_on",
    "isolation",
];

const fn action(
    word: &'static str,
    needs: &'static [&'static str],
    takes: &'static [&'static str],
) -> Action {
    Action { word, needs, takes }
}

const ACTIONS: &[Action] = &[
    action("start", &[], START),
    action("ensure", &[], START),
    action("up", &[], &["name", "cwd", "wait_ms"]),
    action("stop", &["name"], &["cwd", "force", "reason"]),
    action("restart", &["name"], &["cwd", "wait_ms"]),
    action("list", &[], &["cwd", "cursor", "all_workspaces"]),
    action("status", &["name"], &["cwd", "wait_ms"]),
    action("logs", &["name"], &["cwd", "tail", "grep", "cursor"]),
    action("why", &["name"], &["cwd"]),
    action("define", &["name"], DEFINE),
    action("forget", &["name"], &[]),
];

pub(super) const DEFINITION: Definition = Definition {
    name: "service",
    title: "",
    about: "Servers and watchers by name. start: until ready (its port answers) or failed; it \
            goes on. ensure: or reuse one that is well. up: those of ostler.toml. status: waits \
            wait_ms for ready. why: what it waits for, who holds its port. define: keep under \
            name.",
    parameters: &[
        Parameter::required(
            "action",
            Kind::Choice(&[
                "start", "ensure", "up", "stop", "restart", "list", "status", "logs", "why",
                "define", "forget",
            ]),
            "",
        ),
        Parameter::optional("name", Kind::Text, "Or id"),
        Parameter::optional("command", Kind::Words, ""),
        Parameter::optional("script", Kind::Text, ""),
        Parameter::optional("cwd", Kind::Text, ""),
        Parameter::optional("env", Kind::Map, ""),
        Parameter::optional("port", Kind::Port, "auto: a free one"),
        Parameter::optional(
            "ready_when",
            Kind::Text,
            "auto, listening, log, notify, /health, tcp:PORT, exec:COMMAND, quiet:SECONDS",
        ),
        Parameter::optional("ready_pattern", Kind::Text, ""),
        Parameter::optional(
            "timeout",
            Kind::Integer(1, READY_LIMIT_S),
            "Seconds to ready; default 60",
        ),
        Parameter::optional(
            "restart",
            Kind::Choice(&["never", "on-failure", "always"]),
            "",
        ),
        Parameter::optional("depends_on", Kind::List, ""),
        Parameter::optional("isolation", walls::LEVELS, ""),
        Parameter::optional("wait_ms", Kind::Integer(0, WAIT_LIMIT_MS), ""),
        unexplained(TAIL),
        unexplained(GREP),
        unexplained(CURSOR),
        Parameter::optional("force", Kind::Flag, ""),
        Parameter::optional("reason", Kind::Text, ""),
        Parameter::optional("all_workspaces", Kind::Flag, ""),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    match action::chosen(ACTIONS, &mut arguments)? {
        "start" => begin::start(call, arguments).await,
        "ensure" => begin::ensure(call, arguments).await,
        "up" => begin::up(call, arguments).await,
        "restart" => begin::restart(call, arguments).await,
        "status" => look::status(call, arguments).await,
        "logs" => look::logs(call, arguments).await,
        "why" => look::why(call, arguments).await,
        "stop" => change::stop(call, arguments).await,
        "define" => change::define(call, arguments),
        "forget" => change::forget(call, arguments),
        _ => look::list(call, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_and_parameters_are_those_of_the_list() {
        let named = |name: &str| DEFINITION.parameters.iter().find(|it| it.name == name);
        let Some(Kind::Choice(words)) = named("action").map(|it| it.kind) else {
            panic!("action is a choice");
        };
        let actions: Vec<&str> = ACTIONS.iter().map(|it| it.word).collect();
        assert_eq!(words, actions);
        let taken = || {
            ACTIONS
                .iter()
                .flat_map(|it| it.needs.iter().chain(it.takes))
        };
        for name in taken() {
            assert!(named(name).is_some(), "{name} is no parameter");
        }
        for parameter in DEFINITION.parameters {
            let name = parameter.name;
            let used = name == "action" || taken().any(|it| *it == name);
            assert!(used, "no action takes {name}");
        }
    }
}
