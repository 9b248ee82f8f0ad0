//! Loads and validates rule files.

use std::path::PathBuf;

use thiserror::Error;

use crate::analyze::analyze_script;
use crate::rule::{MatchContext, PolicyRule, ResolvedProgram};
use crate::rule_file::{PrefixToken, RuleFile, RuleText};
use crate::ruleset::RuleSet;
use crate::source::{RuleSource, RuleTier};
use crate::verdict::PolicyDecision;

/// Why rule files cannot be used; nothing runs under an incomplete policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Not valid TOML, or an unknown key.
    #[error("{file}: {message}")]
    Syntax {
        /// The source's name.
        file: String,
        /// The parser's message, with its position.
        message: String,
    },
    /// An invalid rule.
    #[error("{file}: rule '{rule}': {problem}")]
    Rule {
        /// The source's name.
        file: String,
        /// The rule's id.
        rule: String,
        /// The problem as text.
        problem: String,
    },
    /// A self-test that fails.
    #[error("{file}: rule '{rule}': {}", if *wanted { format!("does not match its own example '{example}'") } else { format!("matches '{example}', which it says it does not") })]
    SelfTest {
        /// The source's name.
        file: String,
        /// The rule's id.
        rule: String,
        /// The command line.
        example: String,
        /// Whether it should have matched.
        wanted: bool,
    },
    /// A workspace file that would loosen the policy.
    #[error("{file}: a workspace may tighten and never loosen: {what}")]
    Loosens {
        /// The source's name.
        file: String,
        /// The setting or rule that would.
        what: String,
    },
}

/// System directories of programs.
const TRUSTED_DIRS: [&str; 6] = [
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
];
/// The working directory of self-tests.
const SELF_TEST_CWD: &str = "/workspace";
/// The most rules of all files together.
const RULES_MAX: usize = 10_000;
/// The largest file, in bytes.
const FILE_BYTES_MAX: usize = 1024 * 1024;

impl RuleSet {
    /// Loads and checks rule files, in any order of tiers.
    ///
    /// # Errors
    /// The first problem, with its file.
    pub fn load(sources: &[RuleSource]) -> Result<Self, LoadError> {
        let mut sources: Vec<&RuleSource> = sources.iter().collect();
        sources.sort_by_key(|source| source.tier);
        let mut set = Self {
            rules: Vec::new(),
            default: PolicyDecision::Ask,
            trusted: TRUSTED_DIRS.iter().map(|it| (*it).to_owned()).collect(),
            variables: Vec::new(),
        };
        for source in sources {
            add_source(&mut set, source)?;
        }
        for rule in &set.rules {
            run_self_tests(&set, rule)?;
        }
        Ok(set)
    }

    /// This policy with a workspace's rules on top; only those are tested again.
    ///
    /// # Errors
    /// The first problem, which may be that they loosen the policy.
    pub fn with_workspace(&self, source: &RuleSource) -> Result<Self, LoadError> {
        let mut extended = self.clone();
        let source = RuleSource {
            tier: RuleTier::Workspace,
            ..source.clone()
        };
        add_source(&mut extended, &source)?;
        for rule in extended.rules.iter().skip(self.rules.len()) {
            run_self_tests(&extended, rule)?;
        }
        Ok(extended)
    }
}

fn add_source(set: &mut RuleSet, source: &RuleSource) -> Result<(), LoadError> {
    let syntax = |message: String| LoadError::Syntax {
        file: source.name.clone(),
        message,
    };
    if source.text.len() > FILE_BYTES_MAX {
        return Err(syntax(format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    let file: RuleFile = toml::from_str(&source.text).map_err(|error| syntax(error.to_string()))?;
    if source.tier == RuleTier::Workspace {
        check_only_tightens(&file, source)?;
    }
    disable_rules(set, &file, source)?;
    if let Some(default) = file.default {
        set.default = if source.tier == RuleTier::Workspace {
            set.default.max(default)
        } else {
            default
        };
    }
    set.trusted.extend(file.trusted);
    set.variables.extend(file.variables);
    for text in file.rules {
        check_rule(&text, source)?;
        replace_rule(set, &text, source)?;
        set.rules.push(PolicyRule {
            text,
            tier: source.tier,
            file: source.name.clone(),
        });
        if set.rules.len() > RULES_MAX {
            return Err(syntax(format!("more than {RULES_MAX} rules")));
        }
    }
    Ok(())
}

fn check_only_tightens(file: &RuleFile, source: &RuleSource) -> Result<(), LoadError> {
    let loosens = |what: String| {
        Err(LoadError::Loosens {
            file: source.name.clone(),
            what,
        })
    };
    if let Some(rule) = file
        .rules
        .iter()
        .find(|it| it.decision == PolicyDecision::Allow)
    {
        return loosens(format!("rule '{}' allows", rule.id));
    }
    for (present, key) in [
        (!file.trusted.is_empty(), "trusted"),
        (!file.variables.is_empty(), "variables"),
        (!file.disable.is_empty(), "disable"),
        (
            file.default == Some(PolicyDecision::Allow),
            "default = \"allow\"",
        ),
    ] {
        if present {
            return loosens(format!("'{key}'"));
        }
    }
    Ok(())
}

fn disable_rules(set: &mut RuleSet, file: &RuleFile, source: &RuleSource) -> Result<(), LoadError> {
    for id in &file.disable {
        let Some(at) = set.rules.iter().position(|rule| &rule.text.id == id) else {
            return Err(rule_error(
                source,
                id,
                "cannot be switched off: there is none",
            ));
        };
        if set.rules[at].tier >= source.tier {
            return Err(rule_error(
                source,
                id,
                "cannot be switched off from this tier",
            ));
        }
        set.rules.remove(at);
    }
    Ok(())
}

/// Makes room for a rule, which replaces one of a lower tier with the same id. A workspace's replaces
/// none; its files know nothing of each other, so two of them may use one id.
fn replace_rule(set: &mut RuleSet, text: &RuleText, source: &RuleSource) -> Result<(), LoadError> {
    let is_other_workspace = |rule: &PolicyRule| {
        source.tier == RuleTier::Workspace && rule.tier == source.tier && rule.file != source.name
    };
    let mut rules = set.rules.iter();
    let taken = rules.position(|rule| rule.text.id == text.id && !is_other_workspace(rule));
    let Some(at) = taken else {
        return Ok(());
    };
    if source.tier == RuleTier::Workspace || set.rules[at].tier >= source.tier {
        return Err(rule_error(source, &text.id, "the id is taken"));
    }
    set.rules.remove(at);
    Ok(())
}

fn rule_error(source: &RuleSource, rule: &str, problem: impl Into<String>) -> LoadError {
    LoadError::Rule {
        file: source.name.clone(),
        rule: rule.to_owned(),
        problem: problem.into(),
    }
}

fn check_rule(rule: &RuleText, source: &RuleSource) -> Result<(), LoadError> {
    let reserved = ["default", "not-understood", "variable", "redirection"];
    let allows = rule.decision == PolicyDecision::Allow;
    let problems = [
        (rule.id.trim().is_empty(), "the id is empty"),
        (
            reserved.contains(&rule.id.as_str()),
            "the id has a meaning already",
        ),
        (
            rule.justification.trim().is_empty(),
            "the justification is empty",
        ),
        (
            rule.prefix.iter().any(PrefixToken::is_empty),
            "a word of the prefix is empty",
        ),
        (
            rule.prefix.is_empty() && allows,
            "an allow rule needs a prefix",
        ),
        (
            rule.prefix.is_empty() && rule.words.is_empty() && rule.flags.is_empty(),
            "it is about every command; use 'default'",
        ),
        (
            rule.matches.is_empty(),
            "it has no 'match': examples it is about",
        ),
        (
            rule.not_match.is_empty(),
            "it has no 'not_match': examples it is not about",
        ),
        (
            rule.program.iter().any(|path| !path.starts_with('/')),
            "a program is pinned to an absolute path",
        ),
        (
            rule.writes && (allows || !rule.prefix.is_empty() || rule.words.is_empty()),
            "'writes' is for rules that only name files, and do not allow",
        ),
        (
            !allows && (rule.names || rule.opaque || !rule.program.is_empty()),
            "'names', 'opaque' and 'program' are for allow rules",
        ),
    ];
    match problems.iter().find(|(is, _)| *is) {
        Some((_, problem)) => Err(rule_error(source, &rule.id, *problem)),
        None => Ok(()),
    }
}

/// Runs a rule's own examples.
fn run_self_tests(set: &RuleSet, rule: &PolicyRule) -> Result<(), LoadError> {
    let pinned = rule.text.program.first().map(PathBuf::from);
    let find = |_: &str| pinned.clone();
    let context = MatchContext {
        cwd: SELF_TEST_CWD,
        trusted: &set.trusted,
        lookup: Some(&find),
    };
    for (examples, wanted) in [(&rule.text.matches, true), (&rule.text.not_match, false)] {
        for example in examples {
            let analysis = analyze_script(example);
            let matches_invocation = analysis
                .invocations
                .iter()
                .any(|call| rule.matches(call, &ResolvedProgram::of(call, &context), &context));
            let matches_file = analysis
                .redirects
                .iter()
                .any(|it| rule.matches_redirect(it, context.cwd));
            if (matches_invocation || matches_file) != wanted {
                return Err(LoadError::SelfTest {
                    file: rule.file.clone(),
                    rule: rule.text.id.clone(),
                    example: example.clone(),
                    wanted,
                });
            }
        }
    }
    Ok(())
}
