//! The result of evaluating a policy for one command.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The decision on a command. Ordered by strictness: the strictest of all matching rules wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDecision {
    /// It runs.
    Allow,
    /// It runs after a person's approval.
    Ask,
    /// It does not run.
    Deny,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRule {
    /// The rule's id.
    pub rule: String,
    /// Its decision.
    pub decision: PolicyDecision,
    /// Its justification.
    pub reason: String,
    /// The words it matched.
    pub words: Vec<String>,
}

/// The decision on one command, and its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyVerdict {
    /// The strictest decision.
    pub decision: PolicyDecision,
    /// The rule that decided; `default`, `not-understood` where none did.
    pub rule: String,
    /// Its justification.
    pub reason: String,
    /// Every rule that matched, strictest first.
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
