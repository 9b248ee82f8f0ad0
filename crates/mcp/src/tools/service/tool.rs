//! `service`: servers and watchers by name.

use super::{modify, query, start};
use crate::tool_call::ToolCall;
use crate::tools::params::action::{self, ToolAction};
use crate::tools::params::isolation;
use crate::tools::params::output_range::{CURSOR, GREP, TAIL};
use crate::tools::params::{COMMAND, WAIT_LIMIT_MS};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest readiness timeout, in seconds: a day.
const READY_LIMIT_S: i64 = 24 * 60 * 60;

/// The parameters of a start.
const START_PARAMETERS: &[&str] = &[
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
    "backend",
    "image",
    "wait_ms",
];
/// The parameters of a definition.
const DEFINE_PARAMETERS: &[&str] = &[
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
    "backend",
    "image",
];

const fn action(
    word: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> ToolAction {
    ToolAction {
        name: word,
        required,
        optional,
    }
}

const ACTIONS: &[ToolAction] = &[
    action("start", &[], START_PARAMETERS),
    action("ensure", &[], START_PARAMETERS),
    action("up", &[], &["name", "cwd", "wait_ms"]),
    action("stop", &["name"], &["cwd", "force", "reason"]),
    action("restart", &["name"], &["cwd", "wait_ms"]),
    action("list", &[], &["cwd", "cursor", "all_workspaces"]),
    action("status", &["name"], &["cwd", "wait_ms"]),
    action("logs", &["name"], &["cwd", "tail", "grep", "cursor"]),
    action("why", &["name"], &["cwd"]),
    action("define", &["name"], DEFINE_PARAMETERS),
    action("forget", &["name"], &[]),
    action("dismiss", &["name"], &["cwd"]),
];

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "service",
    title: "",
    about: "Servers and watchers by name; they outlive this session and are then shared by all \
            agents of the project. start: waits until it is ready (its port answers, or ready_when); answers URL \
            and ports. ensure: or reuse one that is well. up: those of ostler.toml. why: what it \
            waits for, who holds its port. define: keep a command under name. dismiss: no longer list a failed one.",
    parameters: &[
        Parameter::required(
            "action",
            ParameterKind::Choice(&[
                "start", "ensure", "up", "stop", "restart", "list", "status", "logs", "why",
                "define", "forget", "dismiss",
            ]),
            "What to do",
        ),
        Parameter::optional("name", ParameterKind::Text, "Its name, or id"),
        Parameter {
            required: false,
            ..COMMAND.with_description("As for exec")
        },
        Parameter::alias("script", "command"),
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "Directory; default: the workspace",
        ),
        Parameter::optional("env", ParameterKind::Map, "Variables to add"),
        Parameter::optional(
            "port",
            ParameterKind::Port,
            "Port it must listen on; auto: a free one, put into PORT",
        ),
        Parameter::optional(
            "ready_when",
            ParameterKind::Text,
            "auto (default), listening, /health (an HTTP path), log (see ready_pattern), \
             notify, tcp:PORT, exec:COMMAND, quiet:SECONDS",
        ),
        Parameter::optional(
            "ready_pattern",
            ParameterKind::Text,
            "Regex of the line that means ready",
        ),
        Parameter::optional(
            "restart",
            ParameterKind::Choice(&["never", "on-failure", "always"]),
            "When it ends; default never",
        ),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, READY_LIMIT_S),
            "Seconds it has to become ready; default 60",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "Longest wait for ready",
        ),
        TAIL.with_description("logs: last n lines"),
        GREP.with_description("logs: regex"),
        CURSOR.with_description("logs, list: only what comes after it"),
        Parameter::optional("force", ParameterKind::Flag, "stop: at once"),
        Parameter::optional(
            "options",
            ParameterKind::Options,
            "Rare: isolation; image (container); depends_on [names]; reason (stop); all_workspaces true (list)",
        ),
        Parameter::optional("depends_on", ParameterKind::List, "").in_options(),
        Parameter::optional("isolation", isolation::LEVELS, "").in_options(),
        isolation::BACKEND.in_options(),
        isolation::IMAGE.in_options(),
        Parameter::optional("reason", ParameterKind::Text, "").in_options(),
        Parameter::optional("all_workspaces", ParameterKind::Flag, "").in_options(),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    match action::parse_action(ACTIONS, &mut arguments)? {
        "start" => start::start_service(call, arguments).await,
        "ensure" => start::ensure_service(call, arguments).await,
        "up" => start::up_services(call, arguments).await,
        "restart" => start::restart_service(call, arguments).await,
        "status" => query::service_status(call, arguments).await,
        "logs" => query::service_logs(call, arguments).await,
        "why" => query::explain(call, arguments).await,
        "stop" => modify::stop_service(call, arguments).await,
        "define" => modify::define_service(call, arguments),
        "forget" => modify::forget_service(call, arguments),
        "dismiss" => modify::dismiss_service(call, arguments),
        _ => query::list_services(call, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_interface::params::ParameterLocation;

    #[test]
    fn actions_and_parameters_are_those_of_the_list() {
        let named = |name: &str| DEFINITION.parameters.iter().find(|it| it.name == name);
        let Some(ParameterKind::Choice(words)) = named("action").map(|it| it.kind) else {
            panic!("action is a choice");
        };
        let actions: Vec<&str> = ACTIONS.iter().map(|it| it.name).collect();
        assert_eq!(words, actions);
        let accepted = || {
            ACTIONS
                .iter()
                .flat_map(|it| it.required.iter().chain(it.optional))
        };
        for name in accepted() {
            assert!(named(name).is_some(), "{name} is no parameter");
        }
        for parameter in DEFINITION.parameters {
            let name = parameter.name;
            let is_other_name = !matches!(
                parameter.location,
                ParameterLocation::Listed | ParameterLocation::Options
            );
            let used = ["action", "options"].contains(&name)
                || is_other_name
                || accepted().any(|it| *it == name);
            assert!(used, "no action takes {name}");
        }
    }
}
