//! What is printed when services were started, and the exit code.

use hyper::Method;
use ostler_model::{Cause, ErrorCode};
use ostler_server::render::{clean, service as words};
use ostler_server::wire::{EnsuredBody, PageBody, Why};

use super::waiting::Interrupt;
use super::{board::Board, waiting};
use crate::client::{Body, Client};
use crate::commands::{ids, walls};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};

/// It failed to become ready.
const EXIT_NOT_READY: u8 = 1;
/// Somebody had enough of waiting, as a shell shows it.
const EXIT_INTERRUPTED: u8 = 130;
/// Lines of output that are shown with a failure.
const LAST_LINES: u64 = 10;

/// How services are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// As JSON.
    pub(super) json: bool,
    /// One document rather than a list of them.
    pub(super) single: bool,
}

/// Waits for what was started, where that is wanted, and answers.
///
/// # Errors
/// When the daemon cannot be asked any more, or standard output cannot be written.
pub(super) async fn awaited(
    client: &Client,
    ensured: Vec<EnsuredBody>,
    wait: waiting::WaitArgs,
    how: How,
    (board, interrupt): (&mut Board, &mut Interrupt),
) -> Outcome {
    for info in ensured
        .iter()
        .filter_map(|it| it.service.execution.as_ref())
    {
        walls::tell_missing(info);
    }
    if wait.no_wait {
        return finish(client, &ensured, how).await;
    }
    let waited = waiting::ready(client, ensured.clone(), wait.timeout, (board, interrupt)).await?;
    match waited {
        waiting::Over::Done(waited) => finish(client, &waited, how).await,
        waiting::Over::Interrupted(_) => Ok(left(&ensured)),
    }
}

/// Tells that what was started goes on although nobody waits for it.
pub(super) fn left(ensured: &[EnsuredBody]) -> u8 {
    for it in ensured {
        let name = &it.service.name;
        crate::tell(&format!(
            "not waiting any longer; {name} goes on: `ostler service why {name}` tells how far \
             it is, `ostler service stop {name}` stops it"
        ));
    }
    if ensured.is_empty() {
        crate::tell("interrupted; `ostler service ps` lists what was started");
    }
    EXIT_INTERRUPTED
}

/// Prints the answer.
async fn finish(client: &Client, ensured: &[EnsuredBody], how: How) -> Outcome {
    if let ([one], true) = (ensured, how.single) {
        unborn(one)?;
    }
    if how.json {
        match ensured {
            [one] if how.single => print_json(one)?,
            all => print_json(&all)?,
        }
    } else {
        let mut out = Out::new();
        for (at, it) in ensured.iter().enumerate() {
            if at > 0 {
                out.line("")?;
            }
            text(client, &mut out, it, !how.single).await?;
        }
        out.flush()?;
    }
    Ok(ensured
        .iter()
        .map(code)
        .max_by_key(|&code| (code == EXIT_NOT_READY, code))
        .unwrap_or(0))
}

/// One that was waited for alone and whose program never ran is an error.
fn unborn(ensured: &EnsuredBody) -> Result<(), CommandError> {
    let info = ensured.service.execution.as_ref();
    match info.and_then(|info| info.cause.as_ref()) {
        Some(Cause::SpawnFailed { message, .. }) => Err(CommandError::new(
            ErrorCode::CommandExecution,
            words::not_started(&clean(message)),
        )),
        Some(
            Cause::Exited
            | Cause::Signaled
            | Cause::TimedOut { .. }
            | Cause::Stopped { .. }
            | Cause::OutOfMemory
            | Cause::Lost { .. },
        )
        | None => Ok(()),
    }
}

async fn text(
    client: &Client,
    out: &mut Out,
    ensured: &EnsuredBody,
    named: bool,
) -> Result<(), CommandError> {
    if named {
        out.line(format!("{}:", ensured.service.name))?;
    }
    let margin = if named { "  " } else { "" };
    for line in ensured.message.lines() {
        out.line(format!("{margin}{}", clean(line)))?;
    }
    if code(ensured) == 0 {
        return Ok(());
    }
    for line in last_lines(client, ensured).await {
        out.line(format!("{margin}  {line}"))?;
    }
    for hint in ensured.reason.iter().flat_map(|why| &why.hints) {
        out.line(format!("{margin}hint: {}", clean(hint)))?;
    }
    Ok(())
}

/// The last lines it printed; none where they cannot be had.
async fn last_lines(client: &Client, ensured: &EnsuredBody) -> Vec<String> {
    let Some(info) = &ensured.service.execution else {
        return Vec::new();
    };
    let path = ids::path(&info.id, &format!("/output?tail={LAST_LINES}"));
    let page: Result<PageBody, _> = client.call(Method::GET, &path, Body::None).await;
    let lines = page.map(|page| page.lines).unwrap_or_default();
    let shown = |text: &ostler_model::Text| clean(&text.to_string_lossy()).into_owned();
    lines.iter().map(|line| shown(&line.text)).collect()
}

/// What one of them makes the exit code.
fn code(ensured: &EnsuredBody) -> u8 {
    if ensured.has_completed() {
        return 0;
    }
    match ensured.waited.as_ref().map(|waited| waited.why) {
        None => 0,
        Some(why) if waiting::is_well(why) && !ensured.completes => 0,
        Some(Why::AtMost) => ErrorCode::ProcessTimeout.row().exit,
        Some(_) => EXIT_NOT_READY,
    }
}

/// A start that was refused, in document 004's words.
pub(super) fn refused(error: CommandError) -> CommandError {
    match error {
        CommandError::Told {
            code,
            message,
            hint,
            exit,
            approval,
        } => CommandError::Told {
            code,
            message: words::not_started(&message),
            hint,
            exit,
            approval,
        },
        CommandError::Disconnected(_) | CommandError::BrokenPipe => error,
    }
}
