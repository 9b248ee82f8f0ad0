//! One rule and how it matches.

use crate::analysis::{Invocation, Redirect};
use crate::context::ProgramLookup;
use crate::flags::has_flag;
use crate::paths::{leads_outside, matches_pattern, plain_path, spellings};
use crate::rule_file::{PrefixToken, RuleText};
use crate::source::RuleTier;
use crate::verdict::PolicyDecision;
use crate::word::{Certainty, CommandWord, base_name};

/// One rule in force.
#[derive(Debug, Clone)]
pub(crate) struct PolicyRule {
    pub(crate) text: RuleText,
    pub(crate) tier: RuleTier,
    pub(crate) file: String,
}

/// What decides which program a word refers to, and where it runs.
pub(crate) struct MatchContext<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) trusted: &'a [String],
    pub(crate) lookup: Option<&'a ProgramLookup<'a>>,
}

/// The program of an invocation.
pub(crate) struct ResolvedProgram<'a> {
    /// As written.
    as_written: &'a str,
    /// Its bare name.
    name: &'a str,
    /// Its absolute path, if known.
    path: Option<String>,
    /// Whether a bare name may refer to the program.
    pub(crate) trusted: bool,
}

impl<'a> ResolvedProgram<'a> {
    pub(crate) fn of(invocation: &'a Invocation, context: &MatchContext<'_>) -> Self {
        let as_written = invocation
            .words
            .first()
            .map_or("", |word| word.text.as_str());
        let name = base_name(as_written);
        if as_written.contains('/') {
            let directory = as_written
                .get(..as_written.len() - name.len() - 1)
                .unwrap_or("");
            return Self {
                as_written,
                name,
                path: Some(as_written.to_owned()),
                trusted: context.trusted.iter().any(|it| it == directory),
            };
        }
        let found = context.lookup.and_then(|find| find(name));
        let path = found.map(|it| it.to_string_lossy().into_owned());
        let planted = path
            .as_deref()
            .is_some_and(|path| is_planted(path, context.cwd));
        Self {
            as_written,
            name,
            path,
            trusted: !planted,
        }
    }
}

/// Whether the file could have been put there by anybody who can write to the workspace.
fn is_planted(path: &str, cwd: &str) -> bool {
    let below = |directory: &str| {
        let directory = directory.trim_end_matches('/');
        !directory.is_empty()
            && path
                .strip_prefix(directory)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    !path.starts_with('/')
        || path.contains("/../")
        || below(cwd)
        || below("/tmp")
        || below("/var/tmp")
        || below("/dev/shm")
}

impl PolicyRule {
    /// Whether it matches this invocation. An allow rule requires that every word is known; a
    /// stricter one matches a guess.
    pub(crate) fn matches(
        &self,
        invocation: &Invocation,
        program: &ResolvedProgram<'_>,
        context: &MatchContext<'_>,
    ) -> bool {
        let allows = self.text.decision == PolicyDecision::Allow;
        if !invocation.certain && self.text.decision != PolicyDecision::Deny {
            return false;
        }
        if allows && !self.is_certain_enough(invocation, program) {
            return false;
        }
        if self.text.writes && !is_rename(invocation) {
            return false;
        }
        self.matches_prefix(invocation, program, allows)
            && self.matches_program(program, allows)
            && self.matches_words(invocation, context)
    }

    /// Whether it matches a file opened by a redirection.
    pub(crate) fn matches_redirect(&self, redirect: &Redirect, cwd: &str) -> bool {
        let (text, target) = (&self.text, &redirect.target);
        if text.writes && !redirect.writes {
            return false;
        }
        let only_words = text.prefix.is_empty() && text.flags.is_empty() && !text.outside;
        only_words
            && text.decision != PolicyDecision::Allow
            && matches_any(&text.words, target, cwd)
    }

    fn is_certain_enough(&self, invocation: &Invocation, program: &ResolvedProgram<'_>) -> bool {
        let length = self.text.prefix.len();
        let literal = self.text.prefix.first().is_some_and(|token| {
            program.as_written.contains('/') && token.matches(program.as_written)
        });
        let sure = invocation
            .words
            .iter()
            .take(length)
            .all(CommandWord::is_certain);
        let rest = invocation.words.iter().skip(length);
        let certainty = rest
            .map(|word| word.certainty)
            .max()
            .unwrap_or(Certainty::Certain);
        let enough = match certainty {
            Certainty::Certain | Certainty::Names => true,
            Certainty::AnyNames => self.text.names || self.text.opaque,
            Certainty::Opaque => self.text.opaque,
        };
        sure && enough && (program.trusted || literal)
    }

    fn matches_prefix(
        &self,
        invocation: &Invocation,
        program: &ResolvedProgram<'_>,
        allows: bool,
    ) -> bool {
        let mut tokens = self.text.prefix.iter();
        let Some(first) = tokens.next() else {
            return true;
        };
        let is_program = first.matches(program.as_written)
            || first.matches(program.name)
            || (!allows && first.matches(&program.name.to_lowercase()));
        is_program
            && tokens.enumerate().all(|(at, token)| {
                invocation
                    .words
                    .get(at + 1)
                    .is_some_and(|word| token.matches(&word.text))
            })
    }

    /// A pinned rule allows only the pinned files; a stricter rule is not weakened by a pin.
    fn matches_program(&self, program: &ResolvedProgram<'_>, allows: bool) -> bool {
        let pins = &self.text.program;
        !allows
            || pins.is_empty()
            || program
                .path
                .as_ref()
                .is_some_and(|path| pins.contains(path))
    }

    fn matches_words(&self, invocation: &Invocation, context: &MatchContext<'_>) -> bool {
        let text = &self.text;
        let allows = text.decision == PolicyDecision::Allow;
        let behind = invocation
            .words
            .get(text.prefix.len().max(1)..)
            .unwrap_or_default();
        let has_flags =
            text.flags.is_empty() || text.flags.iter().any(|flag| has_flag(behind, flag));
        let has_word = text.words.is_empty()
            || invocation.words.iter().enumerate().any(|(at, word)| {
                // A bare program is looked up on the path, not in the working directory.
                let is_path = at > 0 || word.text.contains('/');
                let cwd = if is_path { context.cwd } else { "" };
                matches_any(&text.words, word, cwd)
                    || (!allows && matches_widely(&text.words, word))
            });
        let leaves_cwd = !text.outside
            || behind
                .iter()
                .any(|word| leads_outside(&word.text, context.cwd));
        let few = text.operands.is_none_or(|most| {
            // A dash alone is a file: standard input.
            let is_operand = |text: &str| !text.starts_with('-') || text == "-";
            let operands = behind.iter().filter(|word| is_operand(&word.text));
            operands.count() <= most
        });
        let exact = !text.exact || invocation.words.len() == text.prefix.len();
        has_flags && has_word && leaves_cwd && few && exact
    }

    /// A description of what it matches.
    pub(crate) fn describe(&self) -> String {
        let mut parts: Vec<String> = self
            .text
            .prefix
            .iter()
            .map(|token| match token {
                PrefixToken::One(one) => one.clone(),
                PrefixToken::Any(any) => any.join("|"),
            })
            .collect();
        if parts.is_empty() {
            parts.push("any program".to_owned());
        }
        if !self.text.flags.is_empty() {
            parts.push(format!("with {}", self.text.flags.join(" or ")));
        }
        if !self.text.words.is_empty() {
            parts.push(format!("with a word like {}", self.text.words.join(" or ")));
        }
        if self.text.writes {
            parts.push("written by a redirection".to_owned());
        }
        if self.text.exact {
            parts.push("alone".to_owned());
        }
        if self.text.outside {
            parts.push("with a path outside of the working directory".to_owned());
        }
        parts.join(" ")
    }
}

/// Whether the invocation gives a file another name, by which it may be run.
fn is_rename(invocation: &Invocation) -> bool {
    let text = |at: usize| {
        invocation
            .words
            .get(at)
            .map_or("", |word| word.text.as_str())
    };
    base_name(text(0)) == "git" && text(1) == "mv"
}

/// Whether a word, in one of its spellings, matches one of the patterns. A pattern of a place is also
/// compared with what a relative path names from `cwd`, unless that is unknown.
fn matches_any(patterns: &[String], word: &CommandWord, cwd: &str) -> bool {
    let spelled = spellings(&word.text);
    let named: Vec<String> = if cwd.is_empty() {
        Vec::new()
    } else {
        let relative = spelled.iter().filter(|text| is_relative(text));
        relative
            .map(|text| plain_path(&format!("{cwd}/{text}")))
            .collect()
    };
    patterns.iter().any(|pattern| {
        let is_like = |text: &String| matches_pattern(text, pattern);
        spelled.iter().any(is_like) || (names_a_place(pattern) && named.iter().any(is_like))
    })
}

/// Whether a word matches one of the patterns when the home's variable is written `~`, and everything
/// in a directory as the directory.
fn matches_widely(patterns: &[String], word: &CommandWord) -> bool {
    let home = |name: &str| (name == "HOME").then(|| "~".to_owned());
    let text = word.expand(&home);
    let directory = directory_of_all(&text);
    [Some(text.as_str()), directory]
        .into_iter()
        .flatten()
        .any(|text| {
            let plain = plain_path(text);
            let mut patterns = patterns.iter();
            patterns.any(|it| matches_pattern(text, it) || matches_pattern(&plain, it))
        })
}

/// The directory of which a pattern names all files: `/home` for `/home/*`.
fn directory_of_all(pattern: &str) -> Option<&str> {
    let (directory, last) = pattern.trim_end_matches('/').rsplit_once('/')?;
    let is_all = last.contains(['*', '?', '[']) && !last.contains(char::is_alphanumeric);
    let directory = if directory.is_empty() { "/" } else { directory };
    is_all.then(|| directory_of_all(directory).unwrap_or(directory))
}

/// Whether it is about a place in the file system; `/*` is about absolute paths as they are written.
fn names_a_place(pattern: &str) -> bool {
    pattern.starts_with('/') && !pattern.starts_with("/*")
}

fn is_relative(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['/', '~', '-', '$'])
}
