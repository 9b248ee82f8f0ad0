//! One execution as all share it: identity, published state, the way to its driver, and what its
//! driver must know of its readers and writers. It knows no service, terminal or interaction.

mod command;
mod disclosure;
mod handle;
mod input_record;
mod readers;
mod requests;
mod timeline;
mod writer_changes;

pub(crate) use command::{
    DriverCommand, FreezeRequest, InputWrite, ProgressReply, PromptRecord, WriteKind, WriteResult,
};
pub(crate) use handle::{
    DriverFlags, EndedFields, ExecutionHandle, ExecutionIdentity, LiveState, StartOrigin,
};
pub(crate) use readers::{LosslessReader, OutputWatchGuard};
pub(crate) use requests::{
    forward_command, set_frozen, submit_write, submit_write_after, write_input,
};
pub(crate) use timeline::{TerminalChange, TerminalChangeKind, Timeline};
