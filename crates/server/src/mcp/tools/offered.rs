//! Which tools each group offers.

use super::{Definition, command, core, interaction, pty, service, shell};
use crate::mcp::profile::Group;

/// The tools of one group, in the order of `tools/list`.
pub(in crate::mcp) const fn of(group: Group) -> &'static [&'static Definition] {
    match group {
        Group::Core => core::TOOLS,
        Group::Service => service::TOOLS,
        Group::Command => command::TOOLS,
        Group::Shell => shell::TOOLS,
        Group::Interaction => interaction::TOOLS,
        Group::Pty => pty::TOOLS,
    }
}
