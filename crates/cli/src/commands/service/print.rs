//! Output and exit code after services were started.

use hyper::Method;
use ostler_api::{EnsureResponse, OutputPageBody, StartFailureBody, UpResponse, WaitEndKind};
use ostler_model::{ErrorCode, TerminationCause};
use ostler_render::{clean, service as words};
use serde::Serialize;

use super::wait::Interrupt;
use super::{progress::ProgressLines, wait};
use crate::client::{DaemonClient, RequestBody};
use crate::commands::{ids, isolation_args};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

/// The exit code if a service failed to become ready.
const EXIT_NOT_READY: u8 = 1;
/// The exit code after ctrl-c, as a shell has it.
const EXIT_INTERRUPTED: u8 = 130;
/// The most lines of output that are shown with a failure.
const LAST_LINES: u64 = 10;

/// How services are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputMode {
    /// As JSON.
    pub(super) json: bool,
    /// One document rather than a list of them.
    pub(super) single: bool,
}

/// An element of the JSON list of several services.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ListElement<'a> {
    Service(&'a EnsureResponse),
    Failure(&'a StartFailureBody),
}

/// What a person sees of a wait, and how it is interrupted.
#[derive(Debug)]
pub(super) struct WaitUi<'a> {
    pub(super) progress: &'a mut ProgressLines,
    pub(super) interrupt: &'a mut Interrupt,
}

/// Waits for the services that were started, unless not requested, and prints the result, with those
/// that could not be started.
///
/// # Errors
/// When the daemon cannot be reached any more, or standard output cannot be written.
pub(super) async fn wait_and_print(
    client: &DaemonClient,
    result: UpResponse,
    wait: wait::ReadyWaitArgs,
    mode: OutputMode,
    ui: WaitUi<'_>,
) -> CommandResult {
    // Nothing is pending in a response to a request without `wait_ms`.
    let UpResponse {
        services,
        failures,
        pending: _,
    } = result;
    for info in services
        .iter()
        .filter_map(|it| it.service.execution.as_ref())
    {
        isolation_args::warn_missing(info);
    }
    if wait.no_wait {
        return print_results(client, &services, &failures, mode).await;
    }
    let waited = wait::wait_until_ready(
        client,
        services.clone(),
        wait.timeout,
        ui.progress,
        ui.interrupt,
    )
    .await?;
    match waited {
        wait::WorkOutcome::Finished(waited) => {
            print_results(client, &waited, &failures, mode).await
        }
        wait::WorkOutcome::Interrupted(_) => Ok(report_interrupted(&services)),
    }
}

/// Reports after an interrupt that the services keep starting.
pub(super) fn report_interrupted(ensured: &[EnsureResponse]) -> u8 {
    for service in ensured {
        let name = &service.service.name;
        crate::print_note(&format!(
            "not waiting any longer; {name} goes on: `ostler service why {name}` tells how far \
             it is, `ostler service stop {name}` stops it"
        ));
    }
    if ensured.is_empty() {
        crate::print_note("interrupted; `ostler service ps` lists what was started");
    }
    EXIT_INTERRUPTED
}

async fn print_results(
    client: &DaemonClient,
    ensured: &[EnsureResponse],
    failures: &[StartFailureBody],
    mode: OutputMode,
) -> CommandResult {
    if let ([one], true) = (ensured, mode.single) {
        check_spawned(one)?;
    }
    if mode.json {
        match ensured {
            [one] if mode.single => print_json(one)?,
            all => {
                let services = all.iter().map(ListElement::Service);
                let failed = failures.iter().map(ListElement::Failure);
                print_json(&services.chain(failed).collect::<Vec<_>>())?;
            }
        }
    } else {
        let mut out = StdoutWriter::new();
        for (index, it) in ensured.iter().enumerate() {
            if index > 0 {
                out.write_line("")?;
            }
            print_service(client, &mut out, it, !mode.single).await?;
        }
        out.flush()?;
    }
    let errors: Vec<CommandError> = failures.iter().map(start_failure_error).collect();
    errors.iter().for_each(crate::print_error);
    Ok(ensured
        .iter()
        .map(exit_code)
        .chain(errors.iter().map(CommandError::exit_code))
        .max_by_key(|&code| (code == EXIT_NOT_READY, code))
        .unwrap_or(0))
}

/// Fails for a single service whose program could not be started.
fn check_spawned(ensured: &EnsureResponse) -> Result<(), CommandError> {
    let info = ensured.service.execution.as_ref();
    match info.and_then(|info| info.cause.as_ref()) {
        Some(TerminationCause::SpawnFailed { message, .. }) => Err(CommandError::new(
            ErrorCode::CommandExecution,
            words::render_not_started(&clean(message)),
        )),
        Some(
            TerminationCause::Exited
            | TerminationCause::Signaled
            | TerminationCause::TimedOut { .. }
            | TerminationCause::Stopped { .. }
            | TerminationCause::OutOfMemory
            | TerminationCause::Lost { .. },
        )
        | None => Ok(()),
    }
}

async fn print_service(
    client: &DaemonClient,
    out: &mut StdoutWriter,
    ensured: &EnsureResponse,
    with_name: bool,
) -> Result<(), CommandError> {
    if with_name {
        out.write_line(format!("{}:", ensured.service.name))?;
    }
    let margin = if with_name { "  " } else { "" };
    for line in ensured.message.lines() {
        out.write_line(format!("{margin}{}", clean(line)))?;
    }
    if exit_code(ensured) == 0 {
        return Ok(());
    }
    for line in last_lines(client, ensured).await {
        out.write_line(format!("{margin}  {line}"))?;
    }
    for hint in ensured.reason.iter().flat_map(|diagnosis| &diagnosis.hints) {
        out.write_line(format!("{margin}hint: {}", clean(hint)))?;
    }
    Ok(())
}

/// The error about a service that could not be started beside others.
fn start_failure_error(failure: &StartFailureBody) -> CommandError {
    let message = words::render_not_started(&failure.message);
    let error = CommandError::new(failure.code, format!("{}: {message}", failure.name));
    match &failure.hint {
        Some(hint) => error.with_hint(hint.clone()),
        None => error,
    }
}

/// The last lines of its output; none where they cannot be fetched.
async fn last_lines(client: &DaemonClient, ensured: &EnsureResponse) -> Vec<String> {
    let Some(info) = &ensured.service.execution else {
        return Vec::new();
    };
    let path = ids::path(&info.id, &format!("/output?tail={LAST_LINES}"));
    let page: Result<OutputPageBody, _> = client.call(Method::GET, &path, RequestBody::None).await;
    let lines = page.map(|page| page.lines).unwrap_or_default();
    let clean_text = |text: &ostler_model::ByteString| clean(&text.to_string_lossy()).into_owned();
    lines.iter().map(|line| clean_text(&line.text)).collect()
}

/// The exit code for one of them.
fn exit_code(ensured: &EnsureResponse) -> u8 {
    if ensured.has_completed() {
        return 0;
    }
    match ensured.waited.as_ref().map(|waited| waited.why) {
        None => 0,
        Some(reason) if wait::is_ready(reason) && !ensured.completes => 0,
        Some(WaitEndKind::TimedOut) => ErrorCode::ProcessTimeout.info().exit,
        Some(_) => EXIT_NOT_READY,
    }
}

/// The error for a refused start.
pub(super) fn not_started_error(mut error: CommandError) -> CommandError {
    if let CommandError::Failure { message, .. } = &mut error {
        *message = words::render_not_started(message);
    }
    error
}
