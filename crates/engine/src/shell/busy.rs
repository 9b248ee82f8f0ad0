//! One script at a time in one shell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_model::evidence::Evidence;
use ostler_terminal::ShellState;

use super::who;
use crate::entry::Entry;
use crate::error::Error;

/// Characters of a script that others are told.
const TOLD_CHARS: usize = 80;

/// What runs in one session on somebody's behalf.
#[derive(Debug, Default)]
pub(crate) struct RunSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    script: Option<String>,
    /// Where the last script was over and the prompt was back.
    free_since: Option<u64>,
}

impl RunSlot {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where nothing stood at the prompt, because the text of the last script was gone.
    pub(super) fn free_since(&self) -> Option<u64> {
        self.lock().free_since
    }
}

/// The right to type into a shell; given back when dropped.
#[derive(Debug)]
pub(super) struct Running(Arc<Entry>);

impl Running {
    /// Takes the slot, or says what has it.
    pub(super) fn take(entry: &Arc<Entry>, script: &str) -> Result<Self, Error> {
        let mut slot = entry.shell_run.lock();
        if let Some(other) = slot.script.as_deref() {
            return Err(Error::ShellBusy {
                id: entry.id,
                reason: format!("it runs '{other}'"),
            });
        }
        slot.script = Some(summary(script));
        Ok(Self(Arc::clone(entry)))
    }

    /// The script is gone from the prompt, which was back before `offset`.
    pub(super) fn over_before(&self, offset: u64) {
        self.0.shell_run.lock().free_since = offset.checked_sub(1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shell_run.lock().script = None;
    }
}

/// Why a shell takes no command, from where it stands and who has its terminal.
pub(super) fn reason(state: &ShellState, evidence: Option<&Evidence>) -> String {
    match state {
        ShellState::Incomplete { .. } => "it waits for the rest of a command".to_owned(),
        ShellState::Unknown => "it has not shown its prompt yet".to_owned(),
        ShellState::Ended { .. } | ShellState::Prompt { .. } => {
            "its prompt does not come".to_owned()
        }
        ShellState::Running { .. } => evidence.and_then(who::runs).map_or_else(
            || "it runs a command of its own, or its prompt was changed".to_owned(),
            |(name, pid)| format!("it runs {name} (process {pid})"),
        ),
    }
}

/// A script in one line.
fn summary(script: &str) -> String {
    let mut lines = script.lines();
    let line = lines.next().unwrap_or_default();
    let mut told: String = line.chars().take(TOLD_CHARS).collect();
    if told.len() < line.len() || lines.next().is_some() {
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_told_in_one_line() {
        assert_eq!(summary("make test"), "make test");
        assert_eq!(summary("a\nb"), "a…");
        assert_eq!(summary(&"ä".repeat(81)), format!("{}…", "ä".repeat(80)));
        assert_eq!(summary(""), "");
    }
}
