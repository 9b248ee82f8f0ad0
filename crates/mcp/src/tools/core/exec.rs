//! `exec`: run a command; one that takes longer than the wait continues under its id.

use std::time::Duration;

use ostler_engine::{ClientKind, StartRequest, StdinRequest, WaitEnd, WaitFor, WaitOutcome};

use super::as_service::{self, RequestedLaunch, ServiceMode};
use super::terminal::{self, TerminalLaunch};
use super::watch::reply_with_watch;
use crate::approval;
use crate::reply::ToolInterrupt;
use crate::tool_call::ToolCall;
use crate::tools::params::output_range::{MAX_CHARS, OutputSelection};
use crate::tools::params::wait_for::{self, IDLE, PATTERN, UNTIL, WAIT_LIMIT_MS};
use crate::tools::params::{COMMAND, choose_shell, isolation, parse_command};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait::{self, OnPrompt, WaitOptions};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest timeout, in seconds: thirty days.
pub(in crate::tools) const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The default wait of a call, in milliseconds.
pub(in crate::tools) const WAIT_MS: i64 = 10_000;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "exec",
    title: "",
    about: "Run a command. What has not ended after wait_ms goes on under its id: see process \
            (wait, output) and process_control (write, stop). Answers \"[id exit CODE, time]\" \
            (or \"[id running time | cursor C]\", \"[id waiting for input …]\") and what it \
            printed, stdout and stderr in order; of long output the beginning, the end and the \
            lines that look like errors, with cursors to the rest. Each call starts a fresh shell: \
            cd and export do not carry over (for that: input tty, command \"bash\"). Background \
            jobs left with & are ended; give what is to stay an exec of its own. Starts beyond the \
            session's quota (20 at once unless configured) wait their turn. Development servers \
            are recognised and answered when they are ready, with the URL.",
    parameters: &[
        COMMAND,
        Parameter::alias("script", "command"),
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "Directory to run in; default: the workspace",
        ),
        Parameter::optional("env", ParameterKind::Map, "Variables to add"),
        Parameter::optional(
            "stdin",
            ParameterKind::Text,
            "All of its input. Without it input is empty: prompts read end of file at once",
        ),
        Parameter::optional(
            "input",
            ParameterKind::Choice(&["open", "tty"]),
            "open: answer it with process_control write. tty: the same in a terminal, for REPLs, \
             ssh, editors, anything full-screen",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "Longest wait for the answer (45 s a call); never ends the command",
        )
        .with_default(WAIT_MS),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds, then the command and all it started are killed; default never",
        ),
        UNTIL.with_description(
            "Answer when: it ends (default); output matches pattern; it asks for input; it was \
             silent for 1 s; it serves",
        ),
        PATTERN.with_description("Perl-style regex; given alone it means until pattern"),
        Parameter::optional(
            "notify",
            ParameterKind::Text,
            "Regex: a later answer tells when a line matched. That it ended is always told",
        ),
        Parameter::optional(
            "description",
            ParameterKind::Text,
            "A few words, for lists and the person watching",
        ),
        MAX_CHARS,
        Parameter::optional(
            "isolation",
            isolation::LEVELS,
            "Default medium: clean environment, limits, kill of the whole tree. high: sandbox, \
             only cwd writable, no network. container: in an image",
        ),
        Parameter::optional(
            "options",
            ParameterKind::Options,
            "Rare: shell \"zsh\"; keep true (outlives this session); labels [..]; mode oneshot \
             or service; idle_ms; network none, full or [hosts] (high), bridge (container); image NAME (container); workspace \"overlay\" \
             (writes kept apart, see workspace); limits {memory \"512M\", cpus 0.5, pids, disk, \
             files}; secrets [names, into env]; on_prompt ask (ask the person); encoding; forward \
             [ports]; approval ID; allow_degraded [..]",
        ),
        Parameter::optional("shell", ParameterKind::Text, "").in_options(),
        IDLE.in_options(),
        Parameter::optional("mode", ParameterKind::Choice(&["oneshot", "service"]), "")
            .in_options(),
        Parameter::optional("on_prompt", ParameterKind::Choice(&["return", "ask"]), "")
            .in_options(),
        Parameter::optional("labels", ParameterKind::List, "").in_options(),
        Parameter::optional("keep", ParameterKind::Flag, "").in_options(),
        isolation::BACKEND.in_options(),
        isolation::IMAGE.in_options(),
        isolation::NETWORK.in_options(),
        isolation::WORKSPACE.in_options(),
        isolation::ALLOW_DEGRADED.in_options(),
        isolation::FORWARD.in_options(),
        isolation::SECRETS.in_options(),
        isolation::LIMITS.in_options(),
        isolation::APPROVAL.in_options(),
        Parameter::optional("encoding", ParameterKind::Text, "").in_options(),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let mut request = start_request(call, &mut arguments)?;
    let mode = ServiceMode::parse(&mut arguments);
    let reason = wait_for::parse_wait_for(&mut arguments, None)?;
    let notify = wait_for::parse_pattern(&mut arguments, "notify")?;
    let selection = OutputSelection::with_size(&arguments);
    let options = wait_options(&mut arguments, &request, &reason);
    request.options.queue_timeout = options.timeout;
    if request.options.pty.is_some() {
        check_terminal(&mode, &reason, options.on_prompt)?;
        let launch = TerminalLaunch {
            until: mode.has_until.then_some(reason),
            options,
            notify,
            chars: selection.chars,
        };
        return Box::pin(terminal::start_in_terminal(call, request, launch)).await;
    }
    if let Some(service_reason) = mode.service_reason(call, &request, &reason)? {
        let launch = RequestedLaunch {
            request: service_reason.request(request),
            mode,
            until: reason,
            options,
        };
        let serving = as_service::run_as_service(call, launch, &service_reason, notify, &selection);
        return Box::pin(serving).await;
    }
    let waited = if options.timeout == Some(Duration::ZERO) {
        start_without_wait(call, request).await?
    } else {
        wait::run_until(call, request, &reason, options).await?
    };
    Ok(reply_with_watch(call, &waited, notify, &selection).await)
}

/// Refuses what a command in a terminal cannot be: a service, or one whose prompts are passed on.
fn check_terminal(
    mode: &ServiceMode,
    reason: &WaitFor,
    on_prompt: OnPrompt,
) -> Result<(), ApiError> {
    let refused = match (mode.is_service(), reason, on_prompt) {
        (true, ..) => "mode 'service' does not go with input 'tty'; allowed: no input",
        (_, WaitFor::Ready, _) => "until 'ready' does not go with input 'tty'; allowed: no input",
        (_, _, OnPrompt::Ask) => {
            "on_prompt 'ask' does not go with input 'tty'; allowed: input 'open'"
        }
        _ => return Ok(()),
    };
    Err(ApiError::value(refused))
}

/// The options of the wait. Only a call without a wait time of its own may become a task.
fn wait_options(
    arguments: &mut Arguments,
    request: &StartRequest,
    reason: &WaitFor,
) -> WaitOptions {
    WaitOptions {
        timeout: wait_for::parse_wait_ms(arguments),
        may_be_task: !arguments.is_given("wait_ms") && matches!(reason, WaitFor::Exit),
        on_prompt: match arguments.text("on_prompt").as_deref() {
            Some("ask") => OnPrompt::Ask,
            Some(_) => OnPrompt::Return,
            None if request.stdin == StdinRequest::Open || request.options.pty.is_some() => {
                OnPrompt::Return
            }
            None => OnPrompt::Ignore,
        },
    }
}

/// Starts and answers at once; the id is published.
pub(in crate::tools) async fn start_without_wait(
    call: ToolCall<'_>,
    request: StartRequest,
) -> Result<WaitOutcome, ToolInterrupt> {
    let start_guard = approval::begin(call, request).await?;
    let info = call.publish_id(start_guard);
    Ok(WaitOutcome {
        cursor: info.cursor(),
        end: WaitEnd::Nothing,
        info,
    })
}

/// Every argument is validated before anything is started.
fn start_request(call: ToolCall<'_>, arguments: &mut Arguments) -> Result<StartRequest, ApiError> {
    let shell = arguments.text("shell");
    let command = parse_command(arguments, shell.as_deref())?;
    let directory = arguments.text("cwd");
    if directory.as_deref() == Some("") {
        return Err(ApiError::value(
            "parameter 'cwd' is empty; allowed: the path of a directory, or leave it out",
        ));
    }
    let mut request = call.start_request(command, directory.as_deref().unwrap_or_default());
    request.client_kind = ClientKind::Core;
    set_input(&mut request, arguments)?;
    let variables = arguments.map("env").into_iter();
    request.options.set_env = variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    request.options.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.options.description = arguments.text("description").unwrap_or_default();
    request.options.labels = arguments.list("labels");
    request.options.keep = arguments.flag("keep");
    request.options.encoding = arguments.text("encoding").or(request.options.encoding);
    if shell.is_none() {
        choose_shell(call, &mut request);
    }
    isolation::apply_isolation(&mut request, arguments)?;
    Ok(request)
}

/// Sets the input: complete data, an open pipe, or a terminal.
fn set_input(request: &mut StartRequest, arguments: &mut Arguments) -> Result<(), ApiError> {
    let input = arguments.text("input");
    match (arguments.text("stdin"), input.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(ApiError::value(
                "parameters 'stdin' and 'input' are both given; allowed: stdin for the whole \
                 input, or input and process_control write for the first part of it as well",
            ));
        }
        (Some(text), None) => request.stdin = StdinRequest::Bytes(text.into_bytes()),
        (None, Some("tty")) => request.options.pty = Some(terminal::SIZE),
        (None, Some(_)) => request.stdin = StdinRequest::Open,
        (None, None) => {}
    }
    Ok(())
}
