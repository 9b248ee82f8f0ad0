//! The tools of profile `core`.

use super::{exec, process, process_control, workspace};
use crate::mcp::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::mcp::tools) const TOOLS: &[&ToolDefinition] = &[
    &exec::DEFINITION,
    &process::DEFINITION,
    &process_control::DEFINITION,
    &workspace::DEFINITION,
];
