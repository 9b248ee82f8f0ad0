//! `service`: servers and watchers by name (E).

use super::{begin, change, look};
use crate::mcp::context::Call;
use crate::mcp::tools::core::action::{self, Action};
use crate::mcp::tools::core::select::{CURSOR, GREP, TAIL};
use crate::mcp::tools::core::{COMMAND, WAIT_LIMIT_MS};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::walls;
use crate::params::{Arguments, Kind, Parameter};

/// The longest time to become ready that can be asked for, in seconds: a day.
const READY_LIMIT_S: i64 = 24 * 60 * 60;

/// What a start takes.
const START: &[&str] = &[
    "name",
    "command",
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
    action("dismiss", &["name"], &["cwd"]),
];

pub(super) const DEFINITION: Definition = Definition {
    name: "service",
    title: "",
    about: "Servers and watchers by name, shared by all agents of the project; they outlive this \
            session. start: waits until it is ready (its port answers, or ready_when); answers URL \
            and ports. ensure: or reuse one that is well. up: those of ostler.toml. why: what it \
            waits for, who holds its port. define: keep a command under name. dismiss: no longer list a failed one.",
    parameters: &[
        Parameter::required(
            "action",
            Kind::Choice(&[
                "start", "ensure", "up", "stop", "restart", "list", "status", "logs", "why",
                "define", "forget", "dismiss",
            ]),
            "What to do",
        ),
        Parameter::optional("name", Kind::Text, "Its name, or id"),
        Parameter {
            required: false,
            ..COMMAND.told("As for exec")
        },
        Parameter::alias("script", "command"),
        Parameter::optional("cwd", Kind::Text, "Directory; default: the workspace"),
        Parameter::optional("env", Kind::Map, "Variables to add"),
        Parameter::optional(
            "port",
            Kind::Port,
            "Port it must listen on; auto: a free one, put into PORT",
        ),
        Parameter::optional(
            "ready_when",
            Kind::Text,
            "auto (default), listening, /health (an HTTP path), log (see ready_pattern), \
             notify, tcp:PORT, exec:COMMAND, quiet:SECONDS",
        ),
        Parameter::optional(
            "ready_pattern",
            Kind::Text,
            "Regex of the line that means ready",
        ),
        Parameter::optional(
            "restart",
            Kind::Choice(&["never", "on-failure", "always"]),
            "When it ends; default never",
        ),
        Parameter::optional(
            "timeout",
            Kind::Integer(1, READY_LIMIT_S),
            "Seconds it has to become ready; default 60",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "Longest wait for ready",
        ),
        TAIL.told("logs: last n lines"),
        GREP.told("logs: regex"),
        CURSOR.told("logs, list: only what comes after it"),
        Parameter::optional("force", Kind::Flag, "stop: at once"),
        Parameter::optional(
            "options",
            Kind::Options,
            "Rare: isolation; depends_on [names]; reason (stop); all_workspaces true (list)",
        ),
        Parameter::optional("depends_on", Kind::List, "").rare(),
        Parameter::optional("isolation", walls::LEVELS, "").rare(),
        Parameter::optional("reason", Kind::Text, "").rare(),
        Parameter::optional("all_workspaces", Kind::Flag, "").rare(),
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
        "dismiss" => change::dismiss(call, arguments),
        _ => look::list(call, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParameterPlace;

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
            let is_other_name = !matches!(
                parameter.place,
                ParameterPlace::Listed | ParameterPlace::Options
            );
            let used = ["action", "options"].contains(&name)
                || is_other_name
                || taken().any(|it| *it == name);
            assert!(used, "no action takes {name}");
        }
    }
}
