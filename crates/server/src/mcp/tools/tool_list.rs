//! The tools of each group.

use super::{ToolDefinition, command, core, interaction, pty, service, shell};
use crate::mcp::profile::ToolGroup;

/// The tools of one group, in the order of `tools/list`.
pub(in crate::mcp) const fn tools_of(group: ToolGroup) -> &'static [&'static ToolDefinition] {
    match group {
        ToolGroup::Core => core::TOOLS,
        ToolGroup::Service => service::TOOLS,
        ToolGroup::Command => command::TOOLS,
        ToolGroup::Shell => shell::TOOLS,
        ToolGroup::Interaction => interaction::TOOLS,
        ToolGroup::Pty => pty::TOOLS,
    }
}
