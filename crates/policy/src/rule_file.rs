//! The format of a rule file.

use serde::Deserialize;

use crate::verdict::PolicyDecision;

/// A rule file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    /// The decision on commands no rule matches.
    pub(crate) default: Option<PolicyDecision>,
    /// Directories whose programs a rule with a bare name matches when a command names them by
    /// path.
    #[serde(default)]
    pub(crate) trusted: Vec<String>,
    /// Names of variables a command line may set; `*` at the end matches any text.
    #[serde(default)]
    pub(crate) variables: Vec<String>,
    /// Ids of rules of lower tiers that are disabled.
    #[serde(default)]
    pub(crate) disable: Vec<String>,
    /// The rules.
    #[serde(default, rename = "rule")]
    pub(crate) rules: Vec<RuleText>,
}

/// One rule, as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleText {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) prefix: Vec<PrefixToken>,
    pub(crate) decision: PolicyDecision,
    pub(crate) justification: String,
    /// Matches if one of these options is among the words, in any spelling.
    #[serde(default)]
    pub(crate) flags: Vec<String>,
    /// Matches if one of the words matches one of these; `*` matches any text.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    /// Matches if one of the words leads out of the working directory.
    #[serde(default)]
    pub(crate) outside: bool,
    /// Matches only files that are written: by a redirection, or under a new name by `git mv`.
    #[serde(default)]
    pub(crate) writes: bool,
    /// Requires that nothing follows the prefix.
    #[serde(default)]
    pub(crate) exact: bool,
    /// The most words after the prefix that are not options.
    pub(crate) operands: Option<usize>,
    /// Allows any file names of the working directory in place of a word.
    #[serde(default)]
    pub(crate) names: bool,
    /// Allows words whose value is not known.
    #[serde(default)]
    pub(crate) opaque: bool,
    /// The only files the program may be, as absolute paths.
    #[serde(default)]
    pub(crate) program: Vec<String>,
    #[serde(default, rename = "match")]
    pub(crate) matches: Vec<String>,
    #[serde(default)]
    pub(crate) not_match: Vec<String>,
}

/// One word of a prefix, or alternatives for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum PrefixToken {
    /// This word.
    One(String),
    /// Any of these words.
    Any(Vec<String>),
}

impl PrefixToken {
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Self::One(one) => one == text,
            Self::Any(any) => any.iter().any(|one| one == text),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::One(one) => one.is_empty(),
            Self::Any(any) => any.is_empty() || any.iter().any(String::is_empty),
        }
    }
}
