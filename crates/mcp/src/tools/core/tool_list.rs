//! The tools of profile `core`.

use super::{exec, process, process_control, workspace};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &exec::DEFINITION,
    &process::DEFINITION,
    &process_control::DEFINITION,
    &workspace::DEFINITION,
];
