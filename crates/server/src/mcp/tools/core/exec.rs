//! `exec`: run a command; what takes longer than the wait goes on under an id (F4).

use std::time::Duration;

use ostler_engine::{Face, StartRequest, StdinRequest, WaitEnd, WaitFor, Waited};
use ostler_journal::Pattern;

use super::run::{COMMAND, choose_shell, program};
use super::select::{MAX_CHARS, Selection};
use super::serve::{self, Wish};
use super::shown;
use super::terminal;
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

pub(super) const DEFINITION: Definition = Definition {
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
            Kind::Text,
            "Directory to run in; default: the workspace",
        ),
        Parameter::optional("env", Kind::Map, "Variables to add"),
        Parameter::optional(
            "stdin",
            Kind::Text,
            "All of its input. Without it input is empty: prompts read end of file at once",
        ),
        Parameter::optional(
            "input",
            Kind::Choice(&["open", "tty"]),
            "open: answer it with process_control write. tty: the same in a terminal, for REPLs, \
             ssh, editors, anything full-screen",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "Longest wait for the answer (45 s a call); never ends the command",
        )
        .or(WAIT_MS),
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds, then the command and all it started are killed; default never",
        ),
        UNTIL.told(
            "Answer when: it ends (default); output matches pattern; it asks for input; it was \
             silent for 1 s; it serves",
        ),
        PATTERN.told("Perl-style regex; given alone it means until pattern"),
        Parameter::optional(
            "notify",
            Kind::Text,
            "Regex: a later answer tells when a line matched. That it ended is always told",
        ),
        Parameter::optional(
            "description",
            Kind::Text,
            "A few words, for lists and the person watching",
        ),
        MAX_CHARS,
        Parameter::optional(
            "isolation",
            walls::LEVELS,
            "Default medium: clean environment, limits, kill of the whole tree. high: sandbox, \
             only cwd writable, no network",
        ),
        Parameter::optional(
            "options",
            Kind::Options,
            "Rare: shell \"zsh\"; keep true (outlives this session); labels [..]; mode oneshot \
             or service; idle_ms; network none, full or [hosts] (high); workspace \"overlay\" \
             (writes kept apart, see workspace); limits {memory \"512M\", cpus 0.5, pids, disk, \
             files}; secrets [names, into env]; on_prompt ask (ask the person); encoding; forward \
             [ports]; approval ID; allow_degraded [..]",
        ),
        Parameter::optional("shell", Kind::Text, "").rare(),
        IDLE.rare(),
        Parameter::optional("mode", Kind::Choice(&["oneshot", "service"]), "").rare(),
        Parameter::optional("on_prompt", Kind::Choice(&["return", "ask"]), "").rare(),
        Parameter::optional("labels", Kind::List, "").rare(),
        Parameter::optional("keep", Kind::Flag, "").rare(),
        walls::NETWORK.rare(),
        walls::WORKSPACE.rare(),
        walls::ALLOW_DEGRADED.rare(),
        walls::FORWARD.rare(),
        walls::SECRETS.rare(),
        walls::LIMITS.rare(),
        walls::APPROVAL.rare(),
        Parameter::optional("encoding", Kind::Text, "").rare(),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let mut request = request(call, &mut arguments)?;
    let wish = Wish::read(&mut arguments);
    let reason = until::reason(&mut arguments, None)?;
    let notify = until::expression(&mut arguments, "notify")?;
    let selection = Selection::sized(&arguments);
    let options = options(&mut arguments, &request, &reason);
    request.wait_for_place = options.at_most;
    if request.pty.is_some() {
        let reason = wish.says_until.then_some(reason);
        let starting = terminal::start(call, request, (reason, options), notify);
        return Box::pin(starting).await;
    }
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
            None if request.stdin == StdinRequest::Open || request.pty.is_some() => OnPrompt::Tell,
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
    let command = program(arguments, shell.as_deref())?;
    let directory = arguments.text("cwd");
    if directory.as_deref() == Some("") {
        return Err(Failure::value(
            "parameter 'cwd' is empty; allowed: the path of a directory, or leave it out",
        ));
    }
    let mut request = call.start(command, directory.as_deref().unwrap_or_default());
    request.face = Face::Core;
    input(&mut request, arguments)?;
    let variables = arguments.map("env").into_iter();
    request.set_env = variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    request.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.description = arguments.text("description").unwrap_or_default();
    request.labels = arguments.list("labels");
    request.keep = arguments.flag("keep");
    request.encoding = arguments.text("encoding").or(request.encoding);
    if shell.is_none() {
        choose_shell(call, &mut request);
    }
    walls::put_in(&mut request, arguments)?;
    Ok(request)
}

/// The whole input, an open one, or a terminal.
fn input(request: &mut StartRequest, arguments: &mut Arguments) -> Result<(), Failure> {
    let input = arguments.text("input");
    match (arguments.text("stdin"), input.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(Failure::value(
                "parameters 'stdin' and 'input' are both given; allowed: stdin for the whole \
                 input, or input and process_control write for the first part of it as well",
            ));
        }
        (Some(text), None) => request.stdin = StdinRequest::Given(text.into_bytes()),
        (None, Some("tty")) => request.pty = Some(terminal::SIZE),
        (None, Some(_)) => request.stdin = StdinRequest::Open,
        (None, None) => {}
    }
    Ok(())
}
