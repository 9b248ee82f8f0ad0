//! The log of a client's connection over standard streams, which may outlive this process.
//!
//! * `lines`: from bytes to lines.
//! * `record`: one entry of the log, and its encoding.
//! * `state`: the fold of the records, which is what the next daemon continues from.
//! * `log`: the log itself, in a file or in memory.
//! * `attempt`: attached to each request, so that its call is not repeated by the next daemon.

mod attempt;
mod lines;
mod log;
mod record;
mod state;

pub(super) use attempt::RequestAttempt;
pub(super) use lines::{InputLine, LINE_BYTES};
pub(super) use log::{ConnectionLog, ReadOutcome};
pub(super) use record::OutputKind;
pub(super) use state::PendingLine;
