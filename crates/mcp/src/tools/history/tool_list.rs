//! The tools of profile `history`.

use super::history_search;
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[&history_search::DEFINITION];
