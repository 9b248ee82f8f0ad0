//! The tools of profile `service`.

use super::tool;
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[&tool::DEFINITION];
