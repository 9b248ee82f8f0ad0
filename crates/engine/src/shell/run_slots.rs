//! The slots of shell sessions: one command at a time in each. A table beside the executions, keyed
//! by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_model::ExecutionId;
use parking_lot::Mutex;

use crate::error::Error;
use crate::hooks::ExecutionObserver;

/// The most characters of a script that other callers see.
const SUMMARY_CHARS: usize = 80;

/// The slots of all sessions that ran a command.
#[derive(Debug, Default)]
pub(crate) struct ShellRunSlots(Mutex<HashMap<ExecutionId, RunSlot>>);

#[derive(Debug, Default)]
struct RunSlot {
    /// The script in one line, for messages; none while the slot is free.
    script: Option<String>,
    /// Offset at which the last script had ended and the prompt was back.
    free_since: Option<u64>,
    /// The number of writes to the shell, the last script included.
    writes: u64,
}

impl ShellRunSlots {
    /// Acquires the slot of a session; the error names the script that holds it.
    ///
    /// # Errors
    /// [`Error::ShellBusy`] while it is held.
    pub(super) fn acquire(
        self: &Arc<Self>,
        session: ExecutionId,
        script: &str,
    ) -> Result<RunGuard, Error> {
        let mut slots = self.0.lock();
        let slot = slots.entry(session).or_default();
        if let Some(other) = slot.script.as_deref() {
            return Err(Error::ShellBusy {
                id: session,
                reason: format!("it runs '{other}'"),
            });
        }
        slot.script = Some(summary(script));
        Ok(RunGuard {
            slots: Arc::clone(self),
            session,
            prompt: KnownPrompt {
                free_since: slot.free_since,
                writes: slot.writes,
            },
        })
    }
}

impl ExecutionObserver for ShellRunSlots {
    fn ended(&self, id: ExecutionId) {
        self.0.lock().remove(&id);
    }

    fn removed(&self, id: ExecutionId) {
        self.0.lock().remove(&id);
    }
}

/// The right to type into a shell; released on drop.
#[derive(Debug)]
pub(super) struct RunGuard {
    slots: Arc<ShellRunSlots>,
    session: ExecutionId,
    prompt: KnownPrompt,
}

/// What is known of a prompt from the last script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownPrompt {
    /// The offset since which the prompt is empty.
    pub(super) free_since: Option<u64>,
    /// The number of writes to the shell up to that script; later ones may have left text for the
    /// prompt.
    pub(super) writes: u64,
}

impl RunGuard {
    /// What the last script left.
    pub(super) const fn prompt(&self) -> KnownPrompt {
        self.prompt
    }

    /// Records the number of writes up to the one of the script.
    pub(super) fn set_writes(&self, writes: u64) {
        if let Some(slot) = self.slots.0.lock().get_mut(&self.session) {
            slot.writes = writes;
        }
    }

    /// Records that the prompt is empty and was shown before `offset`.
    pub(super) fn set_free_before(&self, offset: u64) {
        if let Some(slot) = self.slots.0.lock().get_mut(&self.session) {
            slot.free_since = offset.checked_sub(1);
        }
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut slots = self.slots.0.lock();
        // None where the session has ended meanwhile.
        if let Some(slot) = slots.get_mut(&self.session) {
            slot.script = None;
            if slot.free_since.is_none() {
                slots.remove(&self.session);
            }
        }
    }
}

/// A script on one line, truncated.
fn summary(script: &str) -> String {
    let mut lines = script.lines();
    let line = lines.next().unwrap_or_default();
    let mut excerpt: String = line.chars().take(SUMMARY_CHARS).collect();
    if excerpt.len() < line.len() || lines.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_summarized_in_one_line() {
        assert_eq!(summary("make test"), "make test");
        assert_eq!(summary("a\nb"), "a…");
        assert_eq!(summary(&"ä".repeat(81)), format!("{}…", "ä".repeat(80)));
        assert_eq!(summary(""), "");
    }

    #[test]
    fn a_session_runs_one_script_and_nothing_is_kept_of_one_that_ended() {
        let slots = Arc::new(ShellRunSlots::default());
        let (one, two) = (ExecutionId::mint(), ExecutionId::mint());
        let guard = slots.acquire(one, "make").expect("it is free");
        assert_eq!(guard.prompt().free_since, None);
        let busy = slots.acquire(one, "ls").expect_err("it runs one");
        assert!(busy.to_string().contains("'make'"), "{busy}");
        let other = slots.acquire(two, "ls").expect("it is free");
        guard.set_free_before(8);
        drop(guard);
        let guard = slots.acquire(one, "ls").expect("it is free again");
        assert_eq!(guard.prompt().free_since, Some(7));
        slots.ended(one);
        guard.set_free_before(9);
        drop(guard);
        other.set_free_before(3);
        drop(other);
        slots.removed(two);
        // A wait for what ran in a session that has ended meanwhile.
        drop(slots.acquire(one, "ls").expect("it is free"));
        assert!(slots.0.lock().is_empty());
    }
}
