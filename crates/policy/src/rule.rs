//! One rule, and what it is about.

use crate::file::{RuleText, Token};
use crate::flags::has_flag;
use crate::paths::{is_like, leads_outside, spellings};
use crate::seen::{Call, Redirect};
use crate::source::Tier;
use crate::subject::Find;
use crate::verdict::Decision;
use crate::word::{Known, Word, base_name};

/// One rule in force.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) text: RuleText,
    pub(crate) tier: Tier,
    pub(crate) file: String,
}

/// What decides which program a word means, and where it runs.
pub(crate) struct Scene<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) trusted: &'a [String],
    pub(crate) find: Option<&'a Find<'a>>,
}

/// The program of a call.
pub(crate) struct Program<'a> {
    /// As written.
    given: &'a str,
    /// Its bare name.
    name: &'a str,
    /// Where it is, if that is known.
    path: Option<String>,
    /// Whether the bare name may be taken for the program.
    pub(crate) trusted: bool,
}

impl<'a> Program<'a> {
    pub(crate) fn of(call: &'a Call, scene: &Scene<'_>) -> Self {
        let given = call.words.first().map_or("", |word| word.text.as_str());
        let name = base_name(given);
        if given.contains('/') {
            let directory = given.get(..given.len() - name.len() - 1).unwrap_or("");
            return Self {
                given,
                name,
                path: Some(given.to_owned()),
                trusted: scene.trusted.iter().any(|it| it == directory),
            };
        }
        let found = scene.find.and_then(|find| find(name));
        let path = found.map(|it| it.to_string_lossy().into_owned());
        let planted = path
            .as_deref()
            .is_some_and(|path| is_planted(path, scene.cwd));
        Self {
            given,
            name,
            path,
            trusted: !planted,
        }
    }
}

/// Whether anybody who writes to the workspace could have put it there.
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

impl Rule {
    /// Whether it is about this call. An allow rule must know every word; a stricter one takes
    /// a guess.
    pub(crate) fn is_about(&self, call: &Call, program: &Program<'_>, scene: &Scene<'_>) -> bool {
        let allows = self.text.decision == Decision::Allow;
        if !call.certain && self.text.decision != Decision::Deny {
            return false;
        }
        if allows && !self.knows(call, program) {
            return false;
        }
        if self.text.writes && !renames(call) {
            return false;
        }
        self.has_prefix(call, program, allows)
            && self.program_is(program, allows)
            && self.has_words(call, scene)
    }

    /// Whether it is about a file opened by a redirection.
    pub(crate) fn is_about_file(&self, redirect: &Redirect) -> bool {
        let (text, target) = (&self.text, &redirect.target);
        if text.writes && !redirect.writes {
            return false;
        }
        let only_words = text.prefix.is_empty() && text.flags.is_empty() && !text.outside;
        only_words && text.decision != Decision::Allow && like_any(&text.words, target)
    }

    fn knows(&self, call: &Call, program: &Program<'_>) -> bool {
        let length = self.text.prefix.len();
        let literal = self
            .text
            .prefix
            .first()
            .is_some_and(|token| program.given.contains('/') && token.is(program.given));
        let sure = call.words.iter().take(length).all(Word::is_sure);
        let rest = call.words.iter().skip(length);
        let known = rest.map(|word| word.known).max().unwrap_or(Known::Sure);
        let enough = match known {
            Known::Sure | Known::Names => true,
            Known::AnyNames => self.text.names || self.text.opaque,
            Known::Opaque => self.text.opaque,
        };
        sure && enough && (program.trusted || literal)
    }

    fn has_prefix(&self, call: &Call, program: &Program<'_>, allows: bool) -> bool {
        let mut tokens = self.text.prefix.iter();
        let Some(first) = tokens.next() else {
            return true;
        };
        let is_program = first.is(program.given)
            || first.is(program.name)
            || (!allows && first.is(&program.name.to_lowercase()));
        is_program
            && tokens.enumerate().all(|(at, token)| {
                call.words
                    .get(at + 1)
                    .is_some_and(|word| token.is(&word.text))
            })
    }

    /// A pinned rule allows only the pinned files; a stricter rule is not weakened by a pin.
    fn program_is(&self, program: &Program<'_>, allows: bool) -> bool {
        let pins = &self.text.program;
        !allows
            || pins.is_empty()
            || program
                .path
                .as_ref()
                .is_some_and(|path| pins.contains(path))
    }

    fn has_words(&self, call: &Call, scene: &Scene<'_>) -> bool {
        let text = &self.text;
        let behind = call
            .words
            .get(text.prefix.len().max(1)..)
            .unwrap_or_default();
        let flagged = text.flags.is_empty() || text.flags.iter().any(|flag| has_flag(behind, flag));
        let worded =
            text.words.is_empty() || call.words.iter().any(|word| like_any(&text.words, word));
        let outside = !text.outside
            || behind
                .iter()
                .any(|word| leads_outside(&word.text, scene.cwd));
        let few = text.operands.is_none_or(|most| {
            let operands = behind.iter().filter(|word| !word.text.starts_with('-'));
            operands.count() <= most
        });
        let exact = !text.exact || call.words.len() == text.prefix.len();
        flagged && worded && outside && few && exact
    }

    /// What it is about, for people.
    pub(crate) fn about(&self) -> String {
        let mut about: Vec<String> = self
            .text
            .prefix
            .iter()
            .map(|token| match token {
                Token::One(one) => one.clone(),
                Token::Any(any) => any.join("|"),
            })
            .collect();
        if about.is_empty() {
            about.push("any program".to_owned());
        }
        if !self.text.flags.is_empty() {
            about.push(format!("with {}", self.text.flags.join(" or ")));
        }
        if !self.text.words.is_empty() {
            about.push(format!("with a word like {}", self.text.words.join(" or ")));
        }
        if self.text.writes {
            about.push("written by a redirection".to_owned());
        }
        if self.text.exact {
            about.push("alone".to_owned());
        }
        if self.text.outside {
            about.push("with a path outside of the working directory".to_owned());
        }
        about.join(" ")
    }
}

/// Whether it gives a file another name, which it may be run by.
fn renames(call: &Call) -> bool {
    let text = |at: usize| call.words.get(at).map_or("", |word| word.text.as_str());
    base_name(text(0)) == "git" && text(1) == "mv"
}

fn like_any(patterns: &[String], word: &Word) -> bool {
    let spelled = spellings(&word.text);
    patterns
        .iter()
        .any(|pattern| spelled.iter().any(|text| is_like(text, pattern)))
}
