//! The lock that admits one command at a time per shell.

use std::sync::Arc;

use ostler_model::snapshot::TreeSnapshot;
use ostler_terminal::ShellState;

use super::tty_processes;
use crate::error::Error;
use crate::execution::ExecutionHandle;

/// Characters of a script that others are told.
const SUMMARY_CHARS: usize = 80;

/// The right to type into a shell; given back when dropped.
#[derive(Debug)]
pub(super) struct RunGuard(Arc<ExecutionHandle>);

impl RunGuard {
    /// Takes the slot, or says what has it.
    pub(super) fn acquire(entry: &Arc<ExecutionHandle>, script: &str) -> Result<Self, Error> {
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
    pub(super) fn set_free_before(&self, offset: u64) {
        self.0.shell_run.lock().free_since = offset.checked_sub(1);
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.shell_run.lock().script = None;
    }
}

/// Why a shell takes no command, from where it stands and who has its terminal.
pub(super) fn busy_reason(state: &ShellState, snapshot: Option<&TreeSnapshot>) -> String {
    match state {
        ShellState::Incomplete { .. } => "it waits for the rest of a command".to_owned(),
        ShellState::Unknown => "it has not shown its prompt yet".to_owned(),
        ShellState::Ended { .. } | ShellState::Prompt { .. } => {
            "its prompt does not come".to_owned()
        }
        ShellState::Running { .. } => snapshot
            .and_then(tty_processes::foreground_process)
            .map_or_else(
                || "it runs a command of its own, or its prompt was changed".to_owned(),
                |(name, pid)| format!("it runs {name} (process {pid})"),
            ),
    }
}

/// A script in one line.
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
    fn a_script_is_told_in_one_line() {
        assert_eq!(summary("make test"), "make test");
        assert_eq!(summary("a\nb"), "a…");
        assert_eq!(summary(&"ä".repeat(81)), format!("{}…", "ä".repeat(80)));
        assert_eq!(summary(""), "");
    }
}
