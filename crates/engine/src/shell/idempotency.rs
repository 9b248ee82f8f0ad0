//! Shell commands with an idempotency key are typed at most once. The shim keeps the record of what
//! was written: it outlives the daemon, and everything that a daemon sent before its death has
//! arrived before the next daemon queries the shim.

use ostler_backend::{ControlError, InputProgress};
use ostler_model::{Caller, InputId};

use super::run::IdempotencyKey;
use crate::error::Error;
use crate::execution::{ExecutionHandle, ProgressReply, WriteKind, submit_write};

/// The result of earlier requests for the same command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriorInput {
    /// It was not typed. Holds the id to type it under, if it is idempotent.
    NotSent(Option<InputId>),
    /// It was typed; its output follows this offset.
    Sent(u64),
}

/// Checks whether a command was typed before.
///
/// # Errors
/// [`Error::TypingUncertain`] where it is unknown, or only part of it was typed.
pub(super) async fn check_prior(
    entry: &ExecutionHandle,
    caller: &Caller,
    once: Option<IdempotencyKey>,
) -> Result<PriorInput, Error> {
    let Some(IdempotencyKey {
        id,
        is_retry: again,
    }) = once
    else {
        return Ok(PriorInput::NotSent(None));
    };
    let reply = submit_write(
        entry,
        caller,
        Vec::new(),
        false,
        WriteKind::QueryProgress(id),
    )
    .await;
    match reply.map(|it| it.progress) {
        Ok(ProgressReply::Some(progress)) => prior_from_progress(entry, progress),
        Ok(ProgressReply::Nothing) => Ok(PriorInput::NotSent(Some(id))),
        Ok(ProgressReply::Unsupported) if again => Err(unknown_error(
            entry,
            "its supervisor process is of an earlier version".to_owned(),
        )),
        Ok(ProgressReply::Unsupported) => Ok(PriorInput::NotSent(None)),
        Err(Error::ControlFailed(ControlError::Ended)) => Err(ended_error(entry, once)),
        Err(error) => Err(error),
    }
}

fn prior_from_progress(
    entry: &ExecutionHandle,
    progress: InputProgress,
) -> Result<PriorInput, Error> {
    let InputProgress {
        input,
        accepted: taken,
    } = progress;
    if taken == input.len {
        return Ok(PriorInput::Sent(input.output_end));
    }
    let reason = format!("{taken} of the {} bytes of it were", input.len);
    Err(unknown_error(entry, reason))
}

/// The error for a shell that has ended, possibly by the command.
pub(super) fn ended_error(entry: &ExecutionHandle, once: Option<IdempotencyKey>) -> Error {
    if once.is_some_and(|once| once.is_retry) {
        return unknown_error(entry, "the shell has ended meanwhile".to_owned());
    }
    ControlError::Ended.into()
}

fn unknown_error(entry: &ExecutionHandle, reason: String) -> Error {
    Error::TypingUncertain {
        id: entry.id,
        reason,
    }
}
