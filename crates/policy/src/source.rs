//! Where rules come from.

use std::fmt;

/// Who wrote a file of rules. A higher tier may switch off or replace rules of a lower one by
/// id; among the rules that are left the strictest wins.
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
    /// Who wrote it.
    pub tier: RuleTier,
    /// What to call it in errors: a path.
    pub name: String,
    /// Its text, TOML.
    pub text: String,
}

/// For coding agents: reading, building and testing in the workspace.
const AGENT_RULES: &str = include_str!("../data/default.toml");
/// The allow list of document 001 §2.2, and what its templates call.
const CLAUDE_RULES: &str = include_str!("../data/claude.toml");

impl RuleSource {
    /// A file of rules.
    #[must_use]
    pub fn new(tier: RuleTier, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tier,
            name: name.into(),
            text: text.into(),
        }
    }

    /// The shipped policy, for `policy.mode = default`: what coding agents do all day is
    /// allowed, what changes the world outside the workspace is asked about. It contains the
    /// policy of document 001.
    #[must_use]
    pub fn shipped() -> Vec<Self> {
        vec![
            Self::new(RuleTier::Default, "shipped: default", AGENT_RULES),
            Self::new(RuleTier::Default, "shipped: claude", CLAUDE_RULES),
        ]
    }

    /// The policy of document 001 alone, for `policy.mode = claude`: its allowed commands, and
    /// nothing else.
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
