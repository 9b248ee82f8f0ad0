//! What is reported of an execution that has ended, and the exit code that it gives.

use ostler_api::ExecutionBody;
use ostler_model::status::ProcessStatus;
use ostler_model::{ErrorCode, OverlayOutcome, Termination, TerminationCause};
use ostler_render::isolation;

use crate::error::{CommandError, CommandResult};
use crate::missing_output::{LossScope, MissingOutput};

/// The exit code after a timeout, as timeout(1) has it.
const EXIT_TIMED_OUT: u8 = 124;
/// The exit code if the wait status of a command is unknown.
const EXIT_LOST: u8 = 125;

/// The exit code of an ended execution, if all requested output was passed on.
///
/// # Errors
/// When some output is missing.
pub(crate) fn output_exit_code(
    info: &ExecutionBody,
    missing_output: MissingOutput,
    scope: LossScope,
) -> CommandResult {
    let code = report_end(info);
    match missing_output.check(scope, info) {
        Ok(()) => Ok(code),
        Err(error) => Err(error.with_hint(format!("the command itself ended with {code}"))),
    }
}

/// The exit code of an ended execution; reports on standard error what the code cannot express.
pub(crate) fn report_end(info: &ExecutionBody) -> u8 {
    let is_abnormal = matches!(
        info.status,
        ProcessStatus::Terminated | ProcessStatus::Error
    );
    if let Some(message) = info.error_message.as_deref().filter(|_| is_abnormal) {
        crate::print_note(&format!("{}: {message}", info.id));
    }
    if info.leftovers > 0 {
        let count = info.leftovers;
        crate::print_note(&format!(
            "{}: {count} processes it left behind were ended",
            info.id
        ));
    }
    report_survivors(info);
    report_isolation(info);
    exit_code(info)
}

/// Reports the processes that no signal ended.
pub(crate) fn report_survivors(info: &ExecutionBody) {
    if !info.survivors.is_empty() {
        crate::print_note(&describe_survivors(info));
    }
}

/// Whether a stop has ended all processes.
///
/// # Errors
/// When some survived SIGKILL: they wait in the kernel, where no signal reaches them.
pub(crate) fn check_survivors(info: &ExecutionBody) -> Result<(), CommandError> {
    if info.survivors.is_empty() {
        return Ok(());
    }
    let message = describe_survivors(info);
    Err(CommandError::new(ErrorCode::ProcessControl, message)
        .with_hint("they wait in the kernel, as for a disk, and end when that goes on"))
}

fn describe_survivors(info: &ExecutionBody) -> String {
    let pids: Vec<String> = info.survivors.iter().map(u32::to_string).collect();
    format!(
        "{}: these processes survived SIGKILL: {}",
        info.id,
        pids.join(", ")
    )
}

/// Reports after the end which limits were reached, what was lost, and how to commit or discard an overlay.
fn report_isolation(info: &ExecutionBody) {
    let (id, isolation) = (&info.id, &info.isolation);
    for limit in limits_reached(info) {
        crate::print_note(&format!("{id}: {limit}"));
    }
    for lost in &isolation.lost {
        crate::print_note(&format!("{id}: {}", lost.reason));
    }
    for line in isolation::describe_autorun(&isolation.autorun) {
        crate::print_note(&format!("{id}: {line}"));
    }
    let confinement = isolation.confinement.as_ref();
    if confinement.and_then(|it| it.overlay) == Some(OverlayOutcome::Open) {
        crate::print_note(&format!(
            "{id}: its writes are kept apart: `ostler diff {id}` shows them, `ostler commit \
             {id}` puts them in place, `ostler discard {id}` forgets them"
        ));
    }
}

/// The limits that were reached, as text.
pub(crate) fn limits_reached(info: &ExecutionBody) -> Vec<String> {
    let is_oom = info.cause == Some(TerminationCause::OutOfMemory);
    let ending = is_oom.then(|| Termination::without_status(TerminationCause::OutOfMemory));
    isolation::describe_limits_hit(
        &info.isolation.limits_hit,
        &info.isolation.limits,
        ending.as_ref(),
    )
}

/// The exit code of `run` and `wait` for an ended execution.
pub(crate) fn exit_code(info: &ExecutionBody) -> u8 {
    if timed_out(info) {
        return EXIT_TIMED_OUT;
    }
    let status = info
        .shell_status
        .and_then(|status| u8::try_from(status).ok());
    status.unwrap_or(EXIT_LOST)
}

/// Whether a timeout ended it.
fn timed_out(info: &ExecutionBody) -> bool {
    matches!(info.cause, Some(TerminationCause::TimedOut { .. }))
}
