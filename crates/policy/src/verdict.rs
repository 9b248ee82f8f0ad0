//! What the policy says about one command.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What may be done; the order is that of strictness, the strictest of all that apply wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDecision {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// It does not run.
    Deny,
}

/// One rule that applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRule {
    /// The rule's id.
    pub rule: String,
    /// What it says.
    pub decision: PolicyDecision,
    /// Why, for people.
    pub reason: String,
    /// The words it applied to.
    pub words: Vec<String>,
}

/// What the policy says about one command, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyVerdict {
    /// The strictest of all.
    pub decision: PolicyDecision,
    /// The rule that decided; `default`, `not-understood` where none did.
    pub rule: String,
    /// Its justification.
    pub reason: String,
    /// Every rule that applied, strictest first.
    pub fired: Vec<MatchedRule>,
}

impl PolicyDecision {
    /// Its name: `allow`, `ask` or `deny`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for PolicyDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PolicyVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            decision,
            rule,
            reason,
            ..
        } = self;
        write!(f, "{decision} by rule '{rule}': {reason}")
    }
}
