//! Commands that may be asked for again, and are typed once. The shim knows what of them went in:
//! it outlives the daemon, and whatever a daemon sent before it died is there before the next
//! one asks.

use ostler_model::{Caller, InputId};
use ostler_process::ControlError;
use ostler_process::place::InputProgress;

use super::run::Once;
use crate::driver::{ProgressAnswer, Purpose};
use crate::engine::put;
use crate::entry::Entry;
use crate::error::Error;

/// What became of a command before it was asked for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// It was not typed. The name under which it is, if it may be asked for again.
    Untyped(Option<InputId>),
    /// It was typed; its output is behind this offset.
    Typed(u64),
}

/// Finds out whether a command was typed before.
///
/// # Errors
/// [`Error::TypedUnknown`] where nobody knows, or only some of it was; as an order.
pub(super) async fn before(
    entry: &Entry,
    caller: &Caller,
    once: Option<Once>,
) -> Result<Before, Error> {
    let Some(Once { id, again }) = once else {
        return Ok(Before::Untyped(None));
    };
    let asked = put(entry, caller, (Vec::new(), false), Purpose::AskProgress(id)).await;
    match asked.map(|it| it.progress) {
        Ok(ProgressAnswer::Some(known)) => typed(entry, known),
        Ok(ProgressAnswer::Nothing) => Ok(Before::Untyped(Some(id))),
        Ok(ProgressAnswer::Unsupported) if again => Err(unknown(
            entry,
            "its supervisor process is of an earlier version".to_owned(),
        )),
        Ok(ProgressAnswer::Unsupported) => Ok(Before::Untyped(None)),
        Err(Error::Control(ControlError::Ended)) => Err(ended(entry, once)),
        Err(error) => Err(error),
    }
}

fn typed(entry: &Entry, known: InputProgress) -> Result<Before, Error> {
    let InputProgress { input, taken } = known;
    if taken == input.len {
        return Ok(Before::Typed(input.at));
    }
    let reason = format!("{taken} of the {} bytes of it were", input.len);
    Err(unknown(entry, reason))
}

/// The error for a shell that has ended, which may have been the command's doing.
pub(super) fn ended(entry: &Entry, once: Option<Once>) -> Error {
    if once.is_some_and(|once| once.again) {
        return unknown(entry, "the shell has ended meanwhile".to_owned());
    }
    ControlError::Ended.into()
}

fn unknown(entry: &Entry, reason: String) -> Error {
    Error::TypedUnknown {
        id: entry.id,
        reason,
    }
}
