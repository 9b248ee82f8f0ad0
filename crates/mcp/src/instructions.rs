//! The `instructions` of the handshake: where commands run, and how the tools work together.

use ostler_engine::ListFilter;
use ostler_model::status::ProcessStatus;
use ostler_render::isolation::SESSION_NOTE;

use super::client::ConnectedClient;
use super::profile::ToolGroup;
use super::state::McpState;
use super::tools;

/// The most characters of a working directory in the instructions.
const DIRECTORY_CHARS: usize = 300;

/// Guidance that applies to every tool.
const COMMON: &str = "\
An id (pid, process_id) is a short string, no OS pid, and the same for every tool. An exit code \
other than 0 is a normal answer, not an error. isolation \"high\" isolates a command from \
everything but the system (read-only) and its workspace; its network is none unless asked for. A \
reply holds at most 12,000 characters; what is left out is counted, with the cursor to read on \
from.";

/// How the tools of one group work together.
const fn group_guide(group: ToolGroup) -> &'static str {
    match group {
        ToolGroup::Core => {
            "exec waits wait_ms (10 s) for a command, then returns its id while it goes on: poll \
             with process (wait, output) and the cursor of the last answer, write to it or stop \
             it with process_control. wait_ms never ends a command, timeout does. input \"tty\" gives \
             it a terminal."
        }
        ToolGroup::Service => {
            "service starts servers and watchers, waits until they are ready, and finds them \
             again by name; exec does so by itself for commands it recognises as such."
        }
        ToolGroup::Command => {
            "command_execute runs one program (no shell) to its end, or returns its pid after \
             45 s; command_bg_start at once. command_ps_logs reads and waits (follow_seconds), \
             command_ps_stop ends."
        }
        ToolGroup::Shell => {
            "execute_shell runs a POSIX script (sync, async, background); poll_process and \
             read_process_output show it, kill_process ends it."
        }
        ToolGroup::Interaction => {
            "interaction_list shows what commands ask; interaction_answer answers."
        }
        ToolGroup::Pty => {
            "pty_start opens a terminal: a shell or a program. pty_run runs a command in that \
             shell; pty_write types to any program and shows what it did; pty_read looks or \
             waits; pty_close ends."
        }
        ToolGroup::History => "history_search finds what ran in the last months.",
        ToolGroup::Template => "template_list shows prepared commands, template_run runs one.",
        ToolGroup::Context => {
            "context_create opens a project directory with variables, limits; context_run runs \
             there; context_close ends it."
        }
    }
}

/// The instructions of one client.
pub(super) fn render_instructions(state: &McpState, client: &ConnectedClient) -> String {
    let running = state.engine().list(
        &client.caller,
        &ListFilter {
            status: Some(ProcessStatus::Running),
            ..ListFilter::default()
        },
    );
    let directory = client.context.cwd.to_string_lossy();
    let directory: String = directory.chars().take(DIRECTORY_CHARS).collect();
    let first = format!(
        "workspace: Active, {} tools, dir: {directory}, {} running processes",
        tools::tools_in(client.context.tools).count(),
        running.len()
    );
    let mut lines = vec![first];
    lines.extend(
        client
            .context
            .tools
            .groups()
            .map(|group| group_guide(group).to_owned()),
    );
    lines.extend([COMMON, SESSION_NOTE].map(str::to_owned));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::GROUPS;

    /// The most bytes of the guide, for any profile.
    const GUIDE_BYTES: usize = 1_750;

    #[test]
    fn the_guide_is_short_with_every_group() {
        let groups: usize = GROUPS
            .iter()
            .map(|group| group_guide(*group).len() + 1)
            .sum();
        let whole = groups + COMMON.len() + SESSION_NOTE.len();
        assert!(whole <= GUIDE_BYTES, "{whole}");
    }
}
