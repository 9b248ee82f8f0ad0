//! Profiles: which tools a client is offered.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A group of tools that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolGroup {
    /// `exec`, `process`, `process_control`, `workspace`.
    Core,
    /// `service`; the profile `core` includes it.
    Service,
    /// The seven `command_` tools.
    Command,
    /// `execute_shell`, its companions, and `kill_process`.
    Shell,
    /// The tools `interaction_list` and `interaction_answer`.
    Interaction,
    /// Terminal sessions: the seven `pty_` tools.
    Pty,
    /// The tool `history_search`.
    History,
    /// The tools `template_list` and `template_run`, and the templates as prompts.
    Template,
    /// The tools `context_create`, `context_list`, `context_run` and `context_close`.
    Context,
}

/// Every group, in the order of `tools/list`.
pub const GROUPS: [ToolGroup; 9] = [
    ToolGroup::Core,
    ToolGroup::Service,
    ToolGroup::Command,
    ToolGroup::Shell,
    ToolGroup::Interaction,
    ToolGroup::Pty,
    ToolGroup::History,
    ToolGroup::Template,
    ToolGroup::Context,
];

/// Every word a profile can be made of; `seeds` is `command` and `shell` together, `core` has
/// `service` with it.
pub const PROFILE_WORDS: [&str; 10] = [
    "core",
    "command",
    "service",
    "shell",
    "interaction",
    "pty",
    "history",
    "template",
    "context",
    "seeds",
];

/// The tools a client is offered: some groups, each at most once, in a fixed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSet([bool; GROUPS.len()]);

/// A word that names no group of tools.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{given}' is no tool profile; allowed: {}", PROFILE_WORDS.join(", "))]
pub struct UnknownProfile {
    given: String,
}

impl ToolGroup {
    /// The group's name in a profile.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Service => "service",
            Self::Command => "command",
            Self::Shell => "shell",
            Self::Interaction => "interaction",
            Self::Pty => "pty",
            Self::History => "history",
            Self::Template => "template",
            Self::Context => "context",
        }
    }

    /// The names of its tools, in the order of `tools/list`.
    pub(super) const fn tool_names(self) -> &'static [&'static str] {
        match self {
            Self::Core => &["exec", "process", "process_control", "workspace"],
            Self::Service => &["service"],
            Self::Command => &[
                "command_execute",
                "command_bg_start",
                "command_ps_list",
                "command_ps_stop",
                "command_ps_logs",
                "command_ps_clean",
                "command_ps_detail",
            ],
            Self::Shell => &[
                "execute_shell",
                "poll_process",
                "read_process_output",
                "list_processes",
                "kill_process",
            ],
            Self::Interaction => &["interaction_list", "interaction_answer"],
            Self::Pty => &[
                "pty_start",
                "pty_run",
                "pty_write",
                "pty_read",
                "pty_resize",
                "pty_list",
                "pty_close",
            ],
            Self::History => &["history_search"],
            Self::Template => &["template_list", "template_run"],
            Self::Context => &[
                "context_create",
                "context_list",
                "context_run",
                "context_close",
            ],
        }
    }
}

impl ToolSet {
    /// A profile of these groups.
    #[must_use]
    pub fn from_groups(groups: &[ToolGroup]) -> Self {
        Self(GROUPS.map(|group| groups.contains(&group)))
    }

    /// Its groups, in the order of `tools/list`.
    pub fn groups(self) -> impl Iterator<Item = ToolGroup> {
        GROUPS
            .into_iter()
            .zip(self.0)
            .filter_map(|(group, is_included)| is_included.then_some(group))
    }

    /// Whether it has the tool with this name.
    pub(super) fn offers(self, tool: &str) -> bool {
        self.groups()
            .any(|group| group.tool_names().contains(&tool))
    }
}

impl Default for ToolSet {
    /// `core` alone, which includes `service`: two families of tools for the same purpose confuse
    /// models.
    fn default() -> Self {
        Self::from_groups(&[ToolGroup::Core, ToolGroup::Service])
    }
}

impl FromStr for ToolSet {
    type Err = UnknownProfile;

    /// Words of [`PROFILE_WORDS`], separated by commas.
    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let mut groups = Vec::new();
        for word in text.split(',').map(str::trim) {
            match word {
                "core" => groups.extend([ToolGroup::Core, ToolGroup::Service]),
                "service" => groups.push(ToolGroup::Service),
                "command" => groups.push(ToolGroup::Command),
                "shell" => groups.push(ToolGroup::Shell),
                "interaction" => groups.push(ToolGroup::Interaction),
                "pty" => groups.push(ToolGroup::Pty),
                "history" => groups.push(ToolGroup::History),
                "template" => groups.push(ToolGroup::Template),
                "context" => groups.push(ToolGroup::Context),
                "seeds" => groups.extend([ToolGroup::Command, ToolGroup::Shell]),
                _ => {
                    return Err(UnknownProfile {
                        given: word.to_owned(),
                    });
                }
            }
        }
        Ok(Self::from_groups(&groups))
    }
}

impl fmt::Display for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.groups().map(ToolGroup::as_str).collect();
        f.write_str(&words.join(","))
    }
}
