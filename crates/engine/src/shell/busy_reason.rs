//! Why a shell accepts no command.

use ostler_model::snapshot::TreeSnapshot;
use ostler_terminal::ShellState;

use super::tty_processes;

/// The reason, by the shell's state and by the process in the foreground of its terminal.
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
