//! The command policy.

use serde::{Deserialize, Serialize};

/// The rules in force; all commands may run where there is no policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyBody {
    /// The decision where no rule matches: `allow`, `ask` or `deny`.
    pub default: String,
    /// The rules.
    pub rules: Vec<PolicyRuleBody>,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRuleBody {
    /// Its id, which refusals name.
    pub id: String,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// What it matches.
    pub about: String,
    /// Why, for people.
    pub reason: String,
    /// Whose rule it is: `shipped`, `system`, `user` or `workspace`.
    pub tier: String,
    /// Its file.
    pub file: String,
}

/// The decision on one command, of which nothing is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyVerdictBody {
    /// The strictest decision of all rules that match: `allow`, `ask` or `deny`.
    pub decision: String,
    /// The rule that decided; `default` or `not-understood` where none did, `none` without a policy.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// Every rule that matched, strictest first.
    pub fired: Vec<MatchedRuleBody>,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRuleBody {
    /// The rule's id.
    pub rule: String,
    /// Its decision.
    pub decision: String,
    /// Its reason.
    pub reason: String,
    /// The words that it matched.
    pub words: Vec<String>,
}
