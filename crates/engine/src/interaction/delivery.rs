//! Types an answer into the execution that asks.

use ostler_backend::ControlError;
use ostler_model::{ExecutionId, Io};
use tokio::sync::oneshot;

use super::question::Question;
use super::table::AnswerDelivery;
use crate::engine_inner::EngineInner;
use crate::error::InteractionError;
use crate::execution::{DriverCommand, InputWrite, WriteKind};
use crate::info::Prompt;
use crate::lease::WriterLeases;
use crate::wait;

/// Whether a question is for a prompt that its command does not wait at any more.
pub(super) async fn is_outdated(
    core: &EngineInner,
    question: &Question,
    execution: ExecutionId,
) -> bool {
    if !question.is_prompt_of(execution) {
        return false;
    }
    let Some(entry) = core.registry.get(execution) else {
        return false;
    };
    if entry.is_finished() {
        return false;
    }
    let is_same =
        |prompt: &Prompt| Question::from_prompt(prompt, execution).is_same_prompt(question);
    // A command that is paused reads nothing, and goes on where it was.
    if entry.live.borrow().state.paused {
        let place = question.prompt_place;
        return !place.is_some_and(|it| wait::is_output_end(&entry, it));
    }
    !wait::waits_at_prompt(core, &entry, is_same).await
}

/// Writes an answer to the input of its execution.
pub(super) async fn write_answer(
    core: &EngineInner,
    leases: &WriterLeases,
    delivery: AnswerDelivery,
) -> Result<(), InteractionError> {
    let id = delivery.execution;
    let entry = core
        .registry
        .get(id)
        .ok_or(InteractionError::Ended { id })?;
    if let Err(error) = leases.check(id, None) {
        return Err(InteractionError::NotDelivered {
            message: error.to_string(),
        });
    }
    let mut bytes = delivery.line.into_bytes();
    bytes.push(line_end(&entry.spec.io));
    let total = bytes.len() as u64;
    let (reply, written) = oneshot::channel();
    let write = InputWrite {
        by: delivery.by,
        bytes,
        close: false,
        kind: WriteKind::PromptReply,
        is_secret: delivery.is_secret,
        only_after: None,
        reply,
    };
    let sent = match entry.send_command(DriverCommand::Write(write)).await {
        // A driver that is done returns nothing more.
        Ok(()) => written
            .await
            .unwrap_or(Err(ControlError::Ended))
            .map(|taken| taken.accepted),
        Err(error) => Err(error),
    };
    match sent {
        Ok(written) if written == total => Ok(()),
        Ok(written) => Err(InteractionError::PartiallyWritten {
            taken: written,
            given: total,
        }),
        Err(ControlError::Ended) => Err(InteractionError::Ended { id }),
        Err(error) => Err(InteractionError::NotDelivered {
            message: error.to_string(),
        }),
    }
}

/// The line end of typed input: that of the Enter key, at a terminal.
const fn line_end(io: &Io) -> u8 {
    match io {
        Io::Pty { .. } => b'\r',
        Io::Pipes { .. } => b'\n',
    }
}
