//! The tools of profile `service`.

use super::tool;
use crate::mcp::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::mcp::tools) const TOOLS: &[&ToolDefinition] = &[&tool::DEFINITION];
