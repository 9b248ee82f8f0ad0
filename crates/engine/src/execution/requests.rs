//! Commands to the driver of an execution whose result is awaited.

use std::time::Duration;

use ostler_backend::{ControlCommand, ControlError};
use ostler_model::{Caller, Principal};
use tokio::sync::oneshot;

use super::command::{DriverCommand, FreezeRequest, InputWrite, WriteKind, WriteResult};
use super::handle::ExecutionHandle;
use crate::error::Error;

/// How long a freeze may take until its result arrives, in milliseconds: the command's way to the
/// driver, plus the longest a backend waits for every process to be frozen.
const FREEZE_ANSWER_MS: u64 = 5_000;

/// Writes the bytes as one unit, and returns the result.
pub(crate) async fn write_input(
    entry: &ExecutionHandle,
    caller: &Caller,
    bytes: Vec<u8>,
    close: bool,
) -> Result<WriteResult, Error> {
    submit_write(entry, caller, bytes, close, WriteKind::Input).await
}

/// Submits bytes to the driver, and returns the result of the write.
pub(crate) async fn submit_write(
    entry: &ExecutionHandle,
    caller: &Caller,
    bytes: Vec<u8>,
    close: bool,
    purpose: WriteKind,
) -> Result<WriteResult, Error> {
    send_write(entry, caller, bytes, close, purpose, None).await
}

/// As [`submit_write`], refused as busy unless exactly `only_after` writes are finished and no other is
/// under way: what is typed answers what the caller has seen.
pub(crate) async fn submit_write_after(
    entry: &ExecutionHandle,
    caller: &Caller,
    bytes: Vec<u8>,
    purpose: WriteKind,
    only_after: u64,
) -> Result<WriteResult, Error> {
    send_write(entry, caller, bytes, false, purpose, Some(only_after)).await
}

async fn send_write(
    entry: &ExecutionHandle,
    caller: &Caller,
    bytes: Vec<u8>,
    close: bool,
    kind: WriteKind,
    only_after: Option<u64>,
) -> Result<WriteResult, Error> {
    let (reply, result) = oneshot::channel();
    let write = InputWrite {
        by: caller.owner.principal.clone(),
        bytes,
        close,
        kind,
        is_secret: false,
        only_after,
        reply,
    };
    entry.send_command(DriverCommand::Write(write)).await?;
    // A driver that is done returns nothing more.
    Ok(result.await.unwrap_or(Err(ControlError::Ended))?)
}

/// Forwards a command that needs no decision of the supervisor.
pub(crate) async fn forward_command(
    entry: &ExecutionHandle,
    command: ControlCommand,
) -> Result<(), Error> {
    let (reply, result) = oneshot::channel();
    entry
        .send_command(DriverCommand::Forward { command, reply })
        .await?;
    // A driver that is done returns nothing more.
    Ok(result.await.unwrap_or(Err(ControlError::Ended))?)
}

/// Freezes or thaws the whole tree; returns when it is so.
pub(crate) async fn set_frozen(
    entry: &ExecutionHandle,
    by: Principal,
    frozen: bool,
) -> Result<(), Error> {
    let freeze_error = |reason: &str| Error::Freeze {
        id: entry.id,
        verb: if frozen { "paused" } else { "resumed" },
        is_over: entry.is_finished(),
        reason: reason.to_owned(),
    };
    let (reply, outcome) = oneshot::channel();
    let freeze = FreezeRequest { frozen, by, reply };
    // The driver accepts no more commands: the execution or the engine has ended.
    if entry
        .send_command(DriverCommand::Freeze(freeze))
        .await
        .is_err()
    {
        return Err(freeze_error("it has ended"));
    }
    let limit = Duration::from_millis(FREEZE_ANSWER_MS);
    match tokio::time::timeout(limit, outcome).await {
        Ok(Ok(Ok(true))) => Ok(()),
        Ok(Ok(Ok(false))) => Err(freeze_error("not all of its processes could be made to")),
        Ok(Ok(Err(ControlError::Ended))) => Err(freeze_error("it is not running")),
        Ok(Ok(Err(error))) => Err(freeze_error(&error.to_string())),
        Ok(Err(_)) => Err(freeze_error("it has ended")),
        Err(_) => Err(freeze_error("its shim does not answer")),
    }
}
