//! The tools of profile `template`.

use super::{template_list, template_run};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] =
    &[&template_list::DEFINITION, &template_run::DEFINITION];
