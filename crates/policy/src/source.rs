//! The sources of rules.

use std::fmt;

/// The origin of a rule file. A higher tier may disable or replace rules of a lower one by id;
/// among the remaining rules the strictest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleTier {
    /// Shipped with the program.
    Default,
    /// The user's own.
    User,
    /// The machine's.
    Admin,
    /// Found in the workspace: may tighten, never loosen; an allow in it is an error.
    Workspace,
}

impl RuleTier {
    /// Its name, for example `admin`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Admin => "admin",
            Self::Workspace => "workspace",
        }
    }
}

impl fmt::Display for RuleTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One file of rules, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// Its tier.
    pub tier: RuleTier,
    /// Its name in errors: a path.
    pub name: String,
    /// Its text, TOML.
    pub text: String,
}

/// The rules for coding agents: reading, building and testing in the workspace.
const AGENT_RULES: &str = include_str!("../data/default.toml");
/// A fixed allow list of commands, and what their templates call.
const CLAUDE_RULES: &str = include_str!("../data/claude.toml");

impl RuleSource {
    /// A rule file.
    #[must_use]
    pub fn new(tier: RuleTier, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tier,
            name: name.into(),
            text: text.into(),
        }
    }

    /// The shipped policy, for `policy.mode = default`: the daily work of coding agents is allowed,
    /// what changes anything outside the workspace must be approved. It includes the policy of
    /// [`RuleSource::claude_only`].
    #[must_use]
    pub fn shipped() -> Vec<Self> {
        vec![
            Self::new(RuleTier::Default, "shipped: default", AGENT_RULES),
            Self::new(RuleTier::Default, "shipped: claude", CLAUDE_RULES),
        ]
    }

    /// The fixed allow list alone, for `policy.mode = claude`: its allowed commands, and nothing
    /// else.
    #[must_use]
    pub fn claude_only() -> Vec<Self> {
        let head = "default = \"deny\"\n";
        vec![Self::new(
            RuleTier::Default,
            "shipped: claude",
            format!("{head}{CLAUDE_RULES}"),
        )]
    }
}
