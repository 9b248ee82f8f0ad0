//! The tools of profile `interaction`.

use super::{interaction_answer, interaction_list};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &interaction_list::DEFINITION,
    &interaction_answer::DEFINITION,
];
