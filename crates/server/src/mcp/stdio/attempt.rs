//! One carrying out of a request that may have to be carried out again: by the next service,
//! when this process dies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ostler_model::ExecutionId;

use super::backlog::Pending;
use super::log::Log;
use super::record::{Binding, Record};

/// Travels with a request, as an extension.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Attempt {
    log: Arc<Log>,
    line: u64,
    member: u32,
    /// What earlier attempts started.
    bindings: Arc<[Binding]>,
    /// An earlier attempt got as far as its tool.
    dispatched: bool,
    /// Executions this attempt asked ids for.
    starts: Arc<AtomicU32>,
}

impl Attempt {
    pub(super) fn new(log: &Arc<Log>, (line, member): (u64, u32), earlier: &Pending) -> Self {
        let bindings = earlier.bindings.iter().filter(|it| it.member == member);
        Self {
            log: Arc::clone(log),
            line,
            member,
            bindings: bindings.copied().collect(),
            dispatched: earlier.dispatched.contains(&member),
            starts: Arc::default(),
        }
    }

    /// The id of the next execution this request starts: the one an earlier attempt had for
    /// it, else a new one, which is in the log before anything has it.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(in crate::mcp) fn next_execution(&self) -> io::Result<ExecutionId> {
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.bindings.iter().find(|it| it.start == start) {
            return Ok(earlier.id);
        }
        let (id, member) = (ExecutionId::mint(), self.member);
        let binding = Binding { member, start, id };
        let line = self.line;
        self.log.append(&Record::Bound { line, binding })?;
        Ok(id)
    }

    /// Whether an earlier attempt had this id for an execution.
    pub(in crate::mcp) fn started(&self, id: ExecutionId) -> bool {
        self.bindings.iter().any(|it| it.id == id)
    }

    /// Whether an earlier attempt got as far as its tool, of a call that must not be repeated.
    pub(in crate::mcp) const fn was_dispatched(&self) -> bool {
        self.dispatched
    }

    /// The call is handed to its tool, and must not be repeated.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(in crate::mcp) fn dispatch(&self) -> io::Result<()> {
        let (line, member) = (self.line, self.member);
        self.log.append(&Record::Dispatched { line, member })
    }
}
