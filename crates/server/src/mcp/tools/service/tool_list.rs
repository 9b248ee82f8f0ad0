//! What profile `service` offers.

use super::tool;
use crate::mcp::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::mcp::tools) const TOOLS: &[&ToolDefinition] = &[&tool::DEFINITION];
