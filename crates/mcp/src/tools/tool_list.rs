//! The tools of each group and profile.

use super::{
    ToolDefinition, command, context, core, history, interaction, pty, service, shell, template,
};
use crate::profile::{GROUPS, ToolGroup, ToolSet};

/// The tools of one group, in the order of `tools/list`.
const fn tools_of(group: ToolGroup) -> &'static [&'static ToolDefinition] {
    match group {
        ToolGroup::Core => core::TOOLS,
        ToolGroup::Service => service::TOOLS,
        ToolGroup::Command => command::TOOLS,
        ToolGroup::Shell => shell::TOOLS,
        ToolGroup::Interaction => interaction::TOOLS,
        ToolGroup::Pty => pty::TOOLS,
        ToolGroup::History => history::TOOLS,
        ToolGroup::Template => template::TOOLS,
        ToolGroup::Context => context::TOOLS,
    }
}

/// The tools of a profile, in the order of `tools/list`.
pub(crate) fn tools_in(profile: ToolSet) -> impl Iterator<Item = &'static ToolDefinition> {
    let groups = profile.groups();
    groups.flat_map(|group| tools_of(group).iter().copied())
}

/// The tool of a profile with this name.
pub(crate) fn find_tool(profile: ToolSet, name: &str) -> Option<&'static ToolDefinition> {
    tools_in(profile).find(|tool| tool.name == name)
}

/// The tool with this name, whatever its group.
pub(crate) fn tool_named(name: &str) -> Option<&'static ToolDefinition> {
    find_tool(ToolSet::from_groups(&GROUPS), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_the_tools_that_its_profile_names() {
        for group in GROUPS {
            let names: Vec<&str> = tools_of(group).iter().map(|tool| tool.name).collect();
            assert_eq!(names, group.tool_names());
        }
    }
}
