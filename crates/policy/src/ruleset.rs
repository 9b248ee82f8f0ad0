//! All rules in force, and their evaluation.

use crate::analysis::{Analysis, Invocation, Redirect, ValueClass};
use crate::analyze::analyze_command;
use crate::context::CommandContext;
use crate::paths::{is_harmless_device, is_harmless_target, leads_outside};
use crate::rule::{MatchContext, PolicyRule, ResolvedProgram};
use crate::source::RuleTier;
use crate::verdict::{MatchedRule, PolicyDecision, PolicyVerdict};
use crate::word::{base_name, texts};

/// The rule reported where no rule matches a command.
pub(crate) const BY_DEFAULT: &str = "default";
/// The rule reported where a command line is not understood.
const NOT_UNDERSTOOD: &str = "not-understood";
/// The rule reported for a variable that may change what runs.
const VARIABLE: &str = "variable";
/// The rule reported for a file a redirection opens.
const REDIRECTION: &str = "redirection";

/// All rules in force.
#[derive(Debug, Clone)]
pub struct RuleSet {
    pub(crate) rules: Vec<PolicyRule>,
    pub(crate) default: PolicyDecision,
    pub(crate) trusted: Vec<String>,
    pub(crate) variables: Vec<String>,
}

/// A rule in force, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// Its id.
    pub id: String,
    /// Its tier.
    pub tier: RuleTier,
    /// Its file.
    pub file: String,
    /// Its decision.
    pub decision: PolicyDecision,
    /// Its justification.
    pub reason: String,
    /// A description of what it matches.
    pub about: String,
    /// How many self-tests it passed.
    pub self_tests: usize,
}

impl RuleSet {
    /// Evaluates a command; a denial carries the rule that decided.
    #[must_use]
    pub fn evaluate(&self, command_context: &CommandContext<'_>) -> PolicyVerdict {
        let cwd = command_context.cwd.to_string_lossy();
        let match_context = MatchContext {
            cwd: &cwd,
            trusted: &self.trusted,
            lookup: command_context.lookup,
        };
        let mut analysis = analyze_command(command_context.command);
        for (name, value) in command_context.set_env {
            let value = ValueClass::of(&value.to_string_lossy());
            analysis.add_variable(name.to_string_lossy(), value);
        }
        analysis.resolve_uses();
        self.decide(&analysis, &match_context)
    }

    /// Every rule in force.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleInfo> {
        let info = |rule: &PolicyRule| RuleInfo {
            id: rule.text.id.clone(),
            tier: rule.tier,
            file: rule.file.clone(),
            decision: rule.text.decision,
            reason: rule.text.justification.clone(),
            about: rule.describe(),
            self_tests: rule.text.matches.len() + rule.text.not_match.len(),
        };
        self.rules.iter().map(info).collect()
    }

    /// The decision on commands no rule matches.
    #[must_use]
    pub const fn default_decision(&self) -> PolicyDecision {
        self.default
    }

    fn decide(&self, analysis: &Analysis, context: &MatchContext<'_>) -> PolicyVerdict {
        let mut matched = Vec::new();
        for invocation in &analysis.invocations {
            self.match_invocation(invocation, context, &mut matched);
        }
        let has_left_cwd = analysis
            .invocations
            .iter()
            .any(|call| !call.launched && leaves_cwd(call, context));
        for redirect in &analysis.redirects {
            self.match_redirect(redirect, context, has_left_cwd, &mut matched);
        }
        let names = analysis.variables.iter().map(|it| &it.name);
        for name in names.filter(|name| !self.is_allowed_variable(name)) {
            let reason = format!("variable '{name}' may change what runs");
            matched.push(self.at_least_ask(VARIABLE, reason, vec![name.clone()]));
        }
        for unresolved in &analysis.unresolved {
            let reason = format!("not understood: {}", unresolved.reason);
            matched.push(self.at_least_ask(NOT_UNDERSTOOD, reason, unresolved.words.clone()));
        }
        if matched.is_empty() {
            matched.push(self.default_match(Vec::new()));
        }
        strictest(matched)
    }

    fn match_invocation(
        &self,
        invocation: &Invocation,
        context: &MatchContext<'_>,
        matched: &mut Vec<MatchedRule>,
    ) {
        let program = ResolvedProgram::of(invocation, context);
        let before = matched.len();
        for rule in &self.rules {
            if rule.matches(invocation, &program, context) {
                matched.push(matched_rule(rule, texts(&invocation.words)));
            }
        }
        if matched.len() == before && invocation.certain && !invocation.transparent {
            matched.push(self.default_match(texts(&invocation.words)));
        } else if invocation.certain && !program.trusted && invocation.transparent {
            let reason = "not understood: a program that could be another".to_owned();
            matched.push(self.at_least_ask(NOT_UNDERSTOOD, reason, texts(&invocation.words)));
        }
    }

    fn match_redirect(
        &self,
        redirect: &Redirect,
        context: &MatchContext<'_>,
        has_left_cwd: bool,
        matched: &mut Vec<MatchedRule>,
    ) {
        let target = &redirect.target;
        let matching = self
            .rules
            .iter()
            .filter(|rule| rule.matches_redirect(redirect, context.cwd));
        matched.extend(matching.map(|rule| matched_rule(rule, vec![target.text.clone()])));
        let device = target.text.starts_with("/dev/") || target.text.contains("/proc/");
        let harmless = target.is_certain()
            && (is_harmless_device(&target.text)
                || (!redirect.writes && !device)
                || (!has_left_cwd && !device && is_harmless_target(&target.text, context.cwd)));
        if !harmless {
            let verb = if redirect.writes { "writes" } else { "reads" };
            let reason = format!("{verb} '{}' by a redirection", target.text);
            matched.push(self.at_least_ask(REDIRECTION, reason, vec![target.text.clone()]));
        }
    }

    fn is_allowed_variable(&self, name: &str) -> bool {
        /// Short lower-case names to which a shell gives a meaning.
        const SPECIAL: [&str; 5] = ["histchars", "path", "fpath", "cdpath", "prompt"];
        let plain = !name.is_empty()
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && !SPECIAL.contains(&name);
        let listed = |known: &String| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == known,
        };
        plain || self.variables.iter().any(listed)
    }

    fn default_match(&self, words: Vec<String>) -> MatchedRule {
        MatchedRule {
            rule: BY_DEFAULT.to_owned(),
            decision: self.default,
            reason: "no rule is about it".to_owned(),
            words,
        }
    }

    /// A match that no rule can allow: at least ask.
    fn at_least_ask(&self, rule: &str, reason: String, words: Vec<String>) -> MatchedRule {
        MatchedRule {
            rule: rule.to_owned(),
            decision: self.default.max(PolicyDecision::Ask),
            reason,
            words,
        }
    }
}

/// Whether a script changes to a directory that is not below its working directory.
fn leaves_cwd(invocation: &Invocation, context: &MatchContext<'_>) -> bool {
    let name = invocation
        .words
        .first()
        .map_or("", |word| base_name(&word.text));
    let away = || match invocation.words.get(1..) {
        Some([target]) => {
            !target.is_certain()
                || leads_outside(&target.text, context.cwd)
                || target.text.starts_with('-')
        }
        Some(_) | None => true,
    };
    matches!(name, "pushd" | "popd" | "chdir") || (name == "cd" && away())
}

fn matched_rule(rule: &PolicyRule, words: Vec<String>) -> MatchedRule {
    MatchedRule {
        rule: rule.text.id.clone(),
        decision: rule.text.decision,
        reason: rule.text.justification.clone(),
        words,
    }
}

/// The strictest match decides; among equal ones, the first.
fn strictest(mut matched: Vec<MatchedRule>) -> PolicyVerdict {
    matched.sort_by_key(|one| std::cmp::Reverse(one.decision));
    matched.dedup();
    let first = matched.first().cloned().unwrap_or_else(|| MatchedRule {
        rule: BY_DEFAULT.to_owned(),
        decision: PolicyDecision::Ask,
        reason: "nothing was judged".to_owned(),
        words: Vec::new(),
    });
    PolicyVerdict {
        decision: first.decision,
        rule: first.rule,
        reason: first.reason,
        fired: matched,
    }
}
