//! The tools of profile `context`.

use super::{context_close, context_create, context_list, context_run};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &context_create::DEFINITION,
    &context_list::DEFINITION,
    &context_run::DEFINITION,
    &context_close::DEFINITION,
];
