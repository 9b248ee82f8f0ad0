//! The tools of profile `command`.

use super::{
    command_bg_start, command_execute, command_ps_clean, command_ps_detail, command_ps_list,
    command_ps_logs, command_ps_stop,
};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &command_execute::DEFINITION,
    &command_bg_start::DEFINITION,
    &command_ps_list::DEFINITION,
    &command_ps_stop::DEFINITION,
    &command_ps_logs::DEFINITION,
    &command_ps_clean::DEFINITION,
    &command_ps_detail::DEFINITION,
];
