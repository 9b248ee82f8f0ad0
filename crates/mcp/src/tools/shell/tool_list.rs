//! The tools of profile `shell_state`.

use super::{execute_shell, kill_process, list_processes, poll_process, read_process_output};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &execute_shell::DEFINITION,
    &poll_process::DEFINITION,
    &read_process_output::DEFINITION,
    &list_processes::DEFINITION,
    &kill_process::DEFINITION,
];
