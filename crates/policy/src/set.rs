//! All rules in force, and what they say about a command.

use crate::load::LoadError;
use crate::look::look;
use crate::paths::{is_harmless_device, is_harmless_target, leads_outside};
use crate::rule::{Program, Rule, Scene};
use crate::seen::{Call, Redirect, Seen, Value};
use crate::source::{Source, Tier};
use crate::subject::Subject;
use crate::verdict::{Decision, Fired, Verdict};
use crate::word::{base_name, texts};

/// The rule named where no rule is about a command.
pub(crate) const BY_DEFAULT: &str = "default";
/// The rule named where a command line is not understood.
const NOT_UNDERSTOOD: &str = "not-understood";
/// The rule named for a variable that may change what runs.
const VARIABLE: &str = "variable";
/// The rule named for a file a redirection opens.
const REDIRECTION: &str = "redirection";

/// All rules in force.
#[derive(Debug, Clone)]
pub struct PolicySet {
    pub(crate) rules: Vec<Rule>,
    pub(crate) default: Decision,
    pub(crate) trusted: Vec<String>,
    pub(crate) variables: Vec<String>,
}

/// One rule in force, for showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// Its id.
    pub id: String,
    /// Who wrote it.
    pub tier: Tier,
    /// In which file.
    pub file: String,
    /// What it says.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// The words it is about, in words.
    pub about: String,
    /// How many self-tests it passed.
    pub self_tests: usize,
}

impl PolicySet {
    /// Reads and checks rule files, in any order of tiers.
    ///
    /// # Errors
    /// The first thing that is wrong, with its file.
    pub fn load(sources: &[Source]) -> Result<Self, LoadError> {
        crate::load::load(sources)
    }

    /// This policy with a workspace's rules on top.
    ///
    /// # Errors
    /// What is wrong with them; among that, what would loosen.
    pub fn tightened(&self, source: &Source) -> Result<Self, LoadError> {
        crate::load::tightened(self, source)
    }

    /// What the policy says about a command; a deny carries the rule that decided.
    #[must_use]
    pub fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let cwd = subject.cwd.to_string_lossy();
        let scene = Scene {
            cwd: &cwd,
            trusted: &self.trusted,
            find: subject.find,
        };
        let mut seen = look(subject.command);
        for (name, value) in subject.set_env {
            let value = Value::of(&value.to_string_lossy());
            seen.set(name.to_string_lossy(), value);
        }
        seen.settle();
        self.decide(&seen, &scene)
    }

    /// Every rule in force.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleInfo> {
        let info = |rule: &Rule| RuleInfo {
            id: rule.text.id.clone(),
            tier: rule.tier,
            file: rule.file.clone(),
            decision: rule.text.decision,
            reason: rule.text.justification.clone(),
            about: rule.about(),
            self_tests: rule.text.matches.len() + rule.text.not_match.len(),
        };
        self.rules.iter().map(info).collect()
    }

    /// What is said about commands no rule is about.
    #[must_use]
    pub const fn default_decision(&self) -> Decision {
        self.default
    }

    fn decide(&self, seen: &Seen, scene: &Scene<'_>) -> Verdict {
        let mut fired = Vec::new();
        for call in &seen.calls {
            self.about_call(call, scene, &mut fired);
        }
        let moved = seen.calls.iter().any(|call| moves_away(call, scene));
        for redirect in &seen.redirects {
            self.about_redirect(redirect, scene, moved, &mut fired);
        }
        let names = seen.variables.iter().map(|it| &it.name);
        for name in names.filter(|name| !self.may_set(name)) {
            let reason = format!("variable '{name}' may change what runs");
            fired.push(self.stricter(VARIABLE, reason, vec![name.clone()]));
        }
        for doubt in &seen.doubts {
            let reason = format!("not understood: {}", doubt.what);
            fired.push(self.stricter(NOT_UNDERSTOOD, reason, doubt.words.clone()));
        }
        if fired.is_empty() {
            fired.push(self.by_default(Vec::new()));
        }
        verdict(fired)
    }

    fn about_call(&self, call: &Call, scene: &Scene<'_>, fired: &mut Vec<Fired>) {
        let program = Program::of(call, scene);
        let before = fired.len();
        for rule in &self.rules {
            if rule.is_about(call, &program, scene) {
                fired.push(of_rule(rule, texts(&call.words)));
            }
        }
        if fired.len() == before && call.certain && !call.transparent {
            fired.push(self.by_default(texts(&call.words)));
        } else if call.certain && !program.trusted && call.transparent {
            let reason = "not understood: a program that could be another".to_owned();
            fired.push(self.stricter(NOT_UNDERSTOOD, reason, texts(&call.words)));
        }
    }

    fn about_redirect(
        &self,
        redirect: &Redirect,
        scene: &Scene<'_>,
        moved: bool,
        fired: &mut Vec<Fired>,
    ) {
        let target = &redirect.target;
        let about = self
            .rules
            .iter()
            .filter(|rule| rule.is_about_file(redirect));
        fired.extend(about.map(|rule| of_rule(rule, vec![target.text.clone()])));
        let device = target.text.starts_with("/dev/") || target.text.contains("/proc/");
        let harmless = target.is_sure()
            && (is_harmless_device(&target.text)
                || (!redirect.writes && !device)
                || (!moved && !device && is_harmless_target(&target.text, scene.cwd)));
        if !harmless {
            let verb = if redirect.writes { "writes" } else { "reads" };
            let reason = format!("{verb} '{}' by a redirection", target.text);
            fired.push(self.stricter(REDIRECTION, reason, vec![target.text.clone()]));
        }
    }

    fn may_set(&self, name: &str) -> bool {
        /// Names a shell gives a meaning to though they are short and in small letters.
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

    fn by_default(&self, words: Vec<String>) -> Fired {
        Fired {
            rule: BY_DEFAULT.to_owned(),
            decision: self.default,
            reason: "no rule is about it".to_owned(),
            words,
        }
    }

    /// Something nobody can allow: asked about at least.
    fn stricter(&self, rule: &str, reason: String, words: Vec<String>) -> Fired {
        Fired {
            rule: rule.to_owned(),
            decision: self.default.max(Decision::Ask),
            reason,
            words,
        }
    }
}

/// Whether a script changes to a directory that is not below its own.
fn moves_away(call: &Call, scene: &Scene<'_>) -> bool {
    let name = call.words.first().map_or("", |word| base_name(&word.text));
    let away = || match call.words.get(1..) {
        Some([target]) => {
            !target.is_sure()
                || leads_outside(&target.text, scene.cwd)
                || target.text.starts_with('-')
        }
        Some(_) | None => true,
    };
    matches!(name, "pushd" | "popd" | "chdir") || (name == "cd" && away())
}

fn of_rule(rule: &Rule, words: Vec<String>) -> Fired {
    Fired {
        rule: rule.text.id.clone(),
        decision: rule.text.decision,
        reason: rule.text.justification.clone(),
        words,
    }
}

/// The strictest decides; among those that say the same, the first.
fn verdict(mut fired: Vec<Fired>) -> Verdict {
    fired.sort_by_key(|one| std::cmp::Reverse(one.decision));
    fired.dedup();
    let first = fired.first().cloned().unwrap_or_else(|| Fired {
        rule: BY_DEFAULT.to_owned(),
        decision: Decision::Ask,
        reason: "nothing was judged".to_owned(),
        words: Vec::new(),
    });
    Verdict {
        decision: first.decision,
        rule: first.rule,
        reason: first.reason,
        fired,
    }
}
