//! The shim's main loop: one plan after another until the daemon's end closes.

use std::os::fd::{AsFd, OwnedFd};

use ostler_backend::prepared_dir::DirPreparation;
use ostler_backend::{LaunchPlan, PLAN_MAX_BYTES, ProcessEvent, execution_dir};
use ostler_sandbox::cgroup::CgroupSlot;

use ostler_sys::seqpacket::ReceiveMode;
use ostler_sys::signals;

use super::daemon_connection::{DaemonConnection, DaemonEvent};
use super::event_loop::{AttemptEnd, AttemptRunner};
use super::spawn::{self, SpawnResult};
use super::state::{Shim, ShimInfo, ShimMode};
use super::streams::READ_BYTES;
use crate::proto::{ShimRequest, decode};
use crate::sys::clone::STACK_BYTES;
use crate::sys::memory::{self, Pages};

/// What a shim is started with.
#[derive(Debug)]
pub(crate) struct ShimSetup {
    pub(crate) socket: OwnedFd,
    pub(crate) executions: OwnedFd,
    pub(crate) identity: ShimInfo,
    pub(crate) slot: Option<CgroupSlot>,
}

/// Runs plans until the daemon's end closes and nothing runs.
pub(crate) fn serve(setup: ShimSetup) {
    let child_signal = match setup.identity.mode {
        ShimMode::Process => signals::sigchld_fd().ok(),
        ShimMode::Thread => None,
    };
    let (Ok(buffer), Ok(stack)) = (Pages::map(READ_BYTES), Pages::map(STACK_BYTES)) else {
        return;
    };
    let mut shim = Shim {
        executions: setup.executions,
        boot: setup.identity.to_identity(),
        preparation: DirPreparation::new(setup.identity.name(0).to_string()),
        identity: setup.identity,
        slot: setup.slot,
        buffer,
        stack,
        child_signal,
        buffer_touched: false,
    };
    let mut daemon = DaemonConnection::new(setup.socket);
    while let Some(plan) = next_plan(&mut daemon, &mut shim) {
        match run_plan(&mut shim, daemon, *plan) {
            Some(next) => daemon = next,
            None => break,
        }
        if shim.buffer_touched {
            shim.buffer_touched = false;
            shim.buffer.release_pages();
        }
    }
    shim.preparation.discard(shim.executions.as_fd());
    if let Some(slot) = shim.slot {
        slot.remove();
    }
}

/// Prepares the directory of the next execution until the daemon sends something. A thread prepares
/// nothing: it may end without a chance to remove it.
fn prepare_next_dir(daemon: &DaemonConnection, shim: &mut Shim) {
    if shim.identity.mode == ShimMode::Thread {
        return;
    }
    while let Some(delay) = shim.preparation.idle_delay() {
        if daemon.is_readable_within(delay) {
            return;
        }
        shim.preparation.advance(shim.executions.as_fd());
    }
}

/// Waits for a plan; none when the daemon's end has closed.
fn next_plan(daemon: &mut DaemonConnection, shim: &mut Shim) -> Option<Box<LaunchPlan>> {
    loop {
        prepare_next_dir(daemon, shim);
        match daemon.receive(shim.buffer.as_mut_slice(), ReceiveMode::Wait) {
            DaemonEvent::Message(
                request @ (ShimRequest::Start(_) | ShimRequest::StartInContainer(..)),
                _,
            ) => return request.into_plan(),
            DaemonEvent::Message(ShimRequest::StartInMemory, Some(file)) => {
                let bytes = memory::read_memfd(file, PLAN_MAX_BYTES).ok()?;
                return decode::<ShimRequest>(&bytes).ok()?.into_plan();
            }
            // Commands for an attempt that is over come too late.
            DaemonEvent::Message(ShimRequest::StartInMemory | ShimRequest::Command { .. }, _)
            | DaemonEvent::Nothing
            | DaemonEvent::Reconnected => {}
            // A plan that cannot be decoded: exiting is the one response every version understands.
            DaemonEvent::Malformed | DaemonEvent::Hangup => return None,
        }
    }
}

/// Runs one plan; returns the connection when another plan may come.
fn run_plan(
    shim: &mut Shim,
    mut daemon: DaemonConnection,
    plan: LaunchPlan,
) -> Option<DaemonConnection> {
    let durability = shim.identity.durability;
    match spawn::spawn(shim, plan) {
        SpawnResult::Spawned(spawned) => match AttemptRunner::new(shim, daemon, *spawned).run() {
            AttemptEnd::Recycle(daemon) => Some(daemon),
            AttemptEnd::Leave => None,
        },
        SpawnResult::Failed { mut record, dir } => {
            let mut idle = true;
            if let Some(dir) = &dir
                && let Err(error) =
                    execution_dir::write_exit_record(dir.as_fd(), &record, durability)
            {
                record.journal_error =
                    Some(format!("cannot write or sync the exit record: {error}"));
                idle = false;
            }
            daemon.send(&ProcessEvent::Exited { record, idle }, None);
            daemon.flush_blocking();
            (idle && daemon.has_daemon()).then_some(daemon)
        }
    }
}
