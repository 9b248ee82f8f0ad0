//! The shim's life: one plan after another until the daemon's end closes.

use std::os::fd::{AsFd, OwnedFd};

use ostler_sandbox::cgroup::{ShimName, Slot};

use super::birth::{self, Birth};
use super::link::{Incoming, Link};
use super::prepared::Preparation;
use super::run::{End, Run};
use super::streams::READ_BYTES;
use crate::proto::{FromShim, PLAN_MAX_BYTES, ToShim, WirePlan, decode};
use crate::sys::clone::STACK_BYTES;
use crate::sys::memory::{self, Pages};
use crate::sys::packet::Patience;
use crate::sys::{proc, signals};

/// How a shim runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A process of its own, subreaper of what it starts.
    Process,
    /// A thread of the engine's process, where children of others must not be touched.
    Thread,
}

/// Who this shim is, for `spec.json`.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) mode: Mode,
    pub(crate) boot_id: String,
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

impl Identity {
    /// The calling process.
    pub(crate) fn own(mode: Mode, boot_id: String) -> Self {
        let pid = std::process::id();
        Self {
            mode,
            boot_id,
            pid,
            start: proc::start_time(i32::try_from(pid).unwrap_or(0)),
        }
    }

    /// The name of a slot; `serial` tells the threads of one process apart.
    pub(crate) fn name(&self, serial: u32) -> ShimName {
        ShimName {
            pid: i32::try_from(self.pid).unwrap_or(0),
            start: self.start,
            serial,
        }
    }
}

/// What a shim begins with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) socket: OwnedFd,
    pub(crate) executions: OwnedFd,
    pub(crate) identity: Identity,
    pub(crate) slot: Option<Slot>,
}

/// What a shim owns from plan to plan.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) executions: OwnedFd,
    pub(crate) identity: Identity,
    pub(crate) slot: Option<Slot>,
    pub(crate) buffer: Pages,
    pub(crate) stack: Pages,
    pub(crate) child_signal: Option<OwnedFd>,
    /// The directory of the next execution.
    pub(crate) preparation: Preparation,
    /// Whether the buffer was touched further than a small command does.
    pub(crate) read_much: bool,
}

/// Carries out plans until the daemon's end closes and nothing runs.
pub(crate) fn serve(setup: Setup) {
    let child_signal = match setup.identity.mode {
        Mode::Process => signals::child_descriptor().ok(),
        Mode::Thread => None,
    };
    let (Ok(buffer), Ok(stack)) = (Pages::map(READ_BYTES), Pages::map(STACK_BYTES)) else {
        return;
    };
    let mut shim = Shim {
        executions: setup.executions,
        identity: setup.identity,
        slot: setup.slot,
        buffer,
        stack,
        child_signal,
        preparation: Preparation::default(),
        read_much: false,
    };
    let mut link = Link::new(setup.socket);
    while let Some(plan) = next_plan(&mut link, &mut shim) {
        match carry_out(&mut shim, link, *plan) {
            Some(next) => link = next,
            None => break,
        }
        if shim.read_much {
            shim.read_much = false;
            shim.buffer.give_back();
        }
    }
    shim.preparation.discard(shim.executions.as_fd());
    if let Some(slot) = shim.slot {
        slot.abandon();
    }
}

/// Prepares the directory of the next execution until the daemon has something to say. A thread
/// prepares nothing: it may end without a chance to remove it.
fn prepare(link: &Link, shim: &mut Shim) {
    if shim.identity.mode == Mode::Thread {
        return;
    }
    while let Some(quiet) = shim.preparation.due() {
        if link.has_news_within(quiet) {
            return;
        }
        shim.preparation
            .step(shim.executions.as_fd(), &shim.identity);
    }
}

/// Waits for a plan; none when the daemon's end has closed.
fn next_plan(link: &mut Link, shim: &mut Shim) -> Option<Box<WirePlan>> {
    loop {
        prepare(link, shim);
        match link.receive(shim.buffer.as_mut_slice(), Patience::Wait) {
            Incoming::Message(ToShim::Start(plan), _) => return Some(plan),
            Incoming::Message(ToShim::StartInMemory, Some(file)) => {
                let bytes = memory::contents(file, PLAN_MAX_BYTES).ok()?;
                let Ok(ToShim::Start(plan)) = decode(&bytes) else {
                    return None;
                };
                return Some(plan);
            }
            // Orders for an attempt that is over come too late.
            Incoming::Message(ToShim::StartInMemory | ToShim::Order { .. }, _)
            | Incoming::Nothing
            | Incoming::Called => {}
            // A plan that cannot be read: to be gone is the one answer everybody understands.
            Incoming::Garbled | Incoming::Hangup => return None,
        }
    }
}

/// One plan from birth to its end; the line back when the next plan may come.
fn carry_out(shim: &mut Shim, mut link: Link, plan: WirePlan) -> Option<Link> {
    match birth::give(shim, plan) {
        Birth::Born(born) => match Run::new(shim, link, *born).carry() {
            End::Recycle(link) => Some(link),
            End::Leave => None,
        },
        Birth::Failed { record, dir } => {
            let mut record = *record;
            let mut idle = true;
            if let Some(dir) = &dir
                && let Err(error) = super::record::finish(dir.as_fd(), &record)
            {
                record.journal_error = Some(format!("cannot write the exit record: {error}"));
                idle = false;
            }
            link.send(&FromShim::Exited { record, idle }, None);
            link.farewell();
            (idle && link.has_daemon()).then_some(link)
        }
    }
}
