//! `exec`: run a command; what takes longer than the wait goes on under an id (F4).

use std::time::Duration;

use ostler_engine::{Face, StartRequest, StdinRequest, WaitEnd, WaitFor, Waited};
use ostler_journal::Pattern;
use ostler_model::{Command, Text};

use super::select::{MAX_CHARS, Selection};
use super::serve::{self, Wish};
use super::shown;
use super::until::{self, IDLE, PATTERN, UNTIL, WAIT_LIMIT_MS};
use crate::error::Failure;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::walls;
use crate::mcp::waiting::{self, OnPrompt, Options};
use crate::params::{Arguments, Kind, Parameter};

/// The longest time limit that can be asked for, in seconds: thirty days.
const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// How long a call waits unless it says otherwise, in milliseconds.
const WAIT_MS: i64 = 10_000;
/// The shell of scripts that name none.
const SHELL: &str = "sh";

pub(super) const DEFINITION: Definition = Definition {
    name: "exec",
    title: "",
    about: "Run a program (command) or a shell script (script). Answers \"[id exit CODE, time]\" \
            and output; what has not ended after wait_ms goes on: \"[id running time | \
            cursor C]\", see process and process_control. Known servers run as services, \
            until ready.",
    parameters: &[
        Parameter::optional("command", Kind::Words, "Program, arguments; no shell"),
        Parameter::optional("script", Kind::Text, "Text for shell"),
        Parameter::optional("shell", Kind::Text, "Default sh"),
        Parameter::optional("cwd", Kind::Text, "Default: yours"),
        Parameter::optional("env", Kind::Map, "Added"),
        Parameter::optional("stdin", Kind::Text, "All its input"),
        Parameter::optional(
            "input",
            Kind::Choice(&["open"]),
            "For process_control write",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "At most (45 s a call)",
        )
        .or(WAIT_MS),
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds, then killed",
        ),
        UNTIL,
        PATTERN,
        IDLE,
        Parameter::optional("mode", Kind::Choice(&["oneshot", "service"]), ""),
        Parameter::optional(
            "on_prompt",
            Kind::Choice(&["return", "ask"]),
            "When it asks: answer, or ask the user",
        ),
        Parameter::optional("notify", Kind::Text, "Tell me when this matches"),
        Parameter::optional("description", Kind::Text, ""),
        Parameter::optional("labels", Kind::List, ""),
        Parameter::optional("keep", Kind::Flag, "Outlives this session"),
        Parameter::optional("isolation", walls::LEVELS, "Default medium"),
        walls::NETWORK,
        walls::WORKSPACE,
        walls::ALLOW_DEGRADED,
        walls::FORWARD,
        walls::SECRETS,
        walls::LIMITS,
        walls::APPROVAL,
        Parameter::optional("encoding", Kind::Text, "Default utf-8"),
        MAX_CHARS,
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let request = request(call, &mut arguments)?;
    let wish = Wish::read(&mut arguments);
    let reason = until::reason(&mut arguments, None)?;
    let notify = until::expression(&mut arguments, "notify")?;
    let selection = Selection::sized(&arguments);
    let options = options(&mut arguments, &request, &reason);
    if let Some(way) = wish.way(call, &request, &reason)? {
        let order = (way.request(request), &way);
        let serving = serve::answer(call, order, (&wish, &reason, options), (notify, &selection));
        return Box::pin(serving).await;
    }
    let waited = if options.at_most == Some(Duration::ZERO) {
        started(call, request).await?
    } else {
        waiting::run_until(call, request, &reason, options).await?
    };
    Ok(told(call, &waited, notify, &selection).await)
}

/// How it stands and what it printed; what is to be told later is watched for from now on.
pub(super) async fn told(
    call: Call<'_>,
    waited: &Waited,
    notify: Option<Pattern>,
    selection: &Selection,
) -> Reply {
    let watch = notify.map(|pattern| watched(call, waited, pattern));
    let mut shown = match shown::shown(call, waited, selection).await {
        Ok(shown) => shown,
        // It runs, or did: its id must not be lost.
        Err(failure) => shown::line(call, waited).with_note(&failure.message()),
    };
    if let Some(problem) = watch.flatten() {
        shown = shown.with_note(&problem);
    }
    let reply = shown.reply();
    match shown::failure(&waited.info) {
        Some(failure) => reply.failed(failure),
        None => reply,
    }
}

/// Has the agent told later of a line; what to say where that cannot be. What has ended needs
/// no watch.
pub(super) fn watched(call: Call<'_>, waited: &Waited, pattern: Pattern) -> Option<String> {
    let info = &waited.info;
    if info.state.is_finished() {
        return None;
    }
    let watching = call
        .desk
        .news()
        .watch(call.caller, &info.id.short(), (pattern, info.cursor()));
    let failure = watching.err()?;
    Some(format!("no line is watched for: {}", failure.message()))
}

/// How to wait. Only a call that leaves the time to us may become a task.
fn options(arguments: &mut Arguments, request: &StartRequest, reason: &WaitFor) -> Options {
    Options {
        at_most: until::wait(arguments),
        may_be_task: !arguments.is_given("wait_ms") && matches!(reason, WaitFor::Exit),
        on_prompt: match arguments.text("on_prompt").as_deref() {
            Some("ask") => OnPrompt::Ask,
            Some(_) => OnPrompt::Tell,
            None if request.stdin == StdinRequest::Open => OnPrompt::Tell,
            None => OnPrompt::Ignore,
        },
    }
}

/// Starts and answers at once; the id counts as given out.
async fn started(call: Call<'_>, request: StartRequest) -> Result<Waited, Interrupted> {
    let begun = consent::begin(call, request).await?;
    let info = call.give_out(begun);
    Ok(Waited {
        cursor: info.cursor(),
        why: WaitEnd::Nothing,
        info,
    })
}

/// Everything is checked before anything is started.
fn request(call: Call<'_>, arguments: &mut Arguments) -> Result<StartRequest, Failure> {
    let shell = arguments.text("shell");
    let command = command(arguments, shell)?;
    let directory = arguments.text("cwd");
    if directory.as_deref() == Some("") {
        return Err(Failure::value(
            "parameter 'cwd' is empty; allowed: the path of a directory, or leave it out",
        ));
    }
    let mut request = call.start(command, directory.as_deref().unwrap_or_default());
    request.face = Face::Core;
    request.stdin = stdin(arguments)?;
    let variables = arguments.map("env").into_iter();
    request.set_env = variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    request.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.description = arguments.text("description").unwrap_or_default();
    request.labels = arguments.list("labels");
    request.keep = arguments.flag("keep");
    request.encoding = arguments.text("encoding").or(request.encoding);
    walls::put_in(&mut request, arguments)?;
    Ok(request)
}

/// Exactly one of `command` and `script`.
pub(in crate::mcp::tools) fn command(
    arguments: &mut Arguments,
    shell: Option<String>,
) -> Result<Command, Failure> {
    let has_command = arguments.is_given("command");
    let words = arguments.list("command");
    match (has_command, arguments.text("script")) {
        (true, Some(_)) => Err(Failure::value(
            "parameters 'command' and 'script' are both given; allowed: one of them",
        )),
        (false, None) => Err(Failure::value(
            "parameter 'command' or 'script' is missing; allowed: command, a list of words as in \
             [\"ls\", \"-l\"], or script, text for a shell",
        )),
        (true, None) if shell.is_some() => Err(Failure::value(
            "parameter 'shell' does not go with 'command', which no shell interprets; allowed: \
             shell with script",
        )),
        (true, None) => {
            let mut words = words.into_iter().map(Text::from);
            Ok(Command::Argv {
                program: words.next().unwrap_or_default(),
                args: words.collect(),
            })
        }
        (false, Some(script)) => Ok(Command::Shell {
            shell: Text::from(shell.unwrap_or_else(|| SHELL.to_owned())),
            script: script.into(),
        }),
    }
}

fn stdin(arguments: &mut Arguments) -> Result<StdinRequest, Failure> {
    match (arguments.text("stdin"), arguments.text("input")) {
        (Some(_), Some(_)) => Err(Failure::value(
            "parameters 'stdin' and 'input' are both given; allowed: stdin for the whole input, \
             or input \"open\" and process_control write for the first part of it as well",
        )),
        (Some(text), None) => Ok(StdinRequest::Given(text.into_bytes())),
        (None, Some(_)) => Ok(StdinRequest::Open),
        (None, None) => Ok(StdinRequest::Default),
    }
}
