//! What the output has said so far.

use std::time::Duration;

use ostler_model::{ReadyRule, ServiceKind, StreamName};

use super::expressions::{Expressions, Failure, Meaning};
use super::limits::{PRINTED_MAX, TOLD_CHARS};
use super::lines::Lines;
use super::printed::{Printed, Weight};

/// What lines are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Everything: it is not ready.
    Everything,
    /// Its address.
    Addresses,
    /// The last line.
    Last,
}

/// A line that was taken note of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    /// The line.
    pub(super) line: String,
    /// When it came.
    pub(super) at: Duration,
}

/// The output of one attempt, as far as it says something.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    streams: [Lines; 4],
    words: Words,
}

/// What was said.
#[derive(Debug, Clone)]
pub(super) struct Words {
    expressions: Expressions,
    kind: ServiceKind,
    /// Addresses, in the order they were printed.
    pub(super) printed: Vec<Printed>,
    /// When the first was.
    pub(super) printed_at: Duration,
    /// A line that shows it ready.
    pub(super) ready: Option<Noted>,
    /// A line of a watcher at rest.
    pub(super) rest: Option<Noted>,
    /// A line that shows it dead.
    pub(super) dead: Option<Noted>,
    /// A port was in use, and nothing tells whether it goes on.
    pub(super) in_use: Option<Noted>,
    /// A port was in use, whatever came of it.
    pub(super) conflict: Option<String>,
    /// An error that may be its end.
    pub(super) suspect: Option<Noted>,
    /// A watcher started its program anew.
    pub(super) again: Option<Duration>,
    /// The last line.
    pub(super) last: String,
    /// When something was printed last.
    pub(super) output_at: Option<Duration>,
}

impl Heard {
    /// Nothing so far.
    pub(super) fn new(rule: &ReadyRule) -> Self {
        Self {
            streams: Default::default(),
            words: Words {
                expressions: Expressions::new(rule),
                kind: rule.kind,
                printed: Vec::new(),
                printed_at: Duration::ZERO,
                ready: None,
                rest: None,
                dead: None,
                in_use: None,
                conflict: None,
                suspect: None,
                again: None,
                last: String::new(),
                output_at: None,
            },
        }
    }

    /// What was said.
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    /// The same, to be taken from.
    pub(super) fn words_mut(&mut self) -> &mut Words {
        &mut self.words
    }

    /// Takes in output.
    pub(super) fn output(&mut self, stream: StreamName, bytes: &[u8], at: Duration, care: Care) {
        let lines = match stream {
            StreamName::Stdout => &mut self.streams[0],
            StreamName::Stderr => &mut self.streams[1],
            StreamName::Pty => &mut self.streams[2],
            // What it was given is not what it says.
            StreamName::Stdin => return,
        };
        self.words.output_at = Some(at);
        let words = &mut self.words;
        lines.push(bytes, at, |line| words.line(line, at, care));
    }

    /// Takes unfinished lines that stood long enough for lines.
    pub(super) fn rest(&mut self, at: Duration, care: Care) {
        let words = &mut self.words;
        for lines in &mut self.streams {
            lines.rest(at, |line| words.line(line, at, care));
        }
    }

    /// When unfinished lines are due.
    pub(super) fn due(&self) -> impl Iterator<Item = Duration> {
        self.streams.iter().filter_map(Lines::due)
    }
}

impl Words {
    /// Whether the rule has ready expressions.
    pub(super) fn has_ready(&self) -> bool {
        self.expressions.has_ready()
    }

    /// The first of them.
    pub(super) fn first_ready(&self) -> Option<&str> {
        self.expressions.first_ready()
    }

    fn line(&mut self, line: &str, at: Duration, care: Care) {
        match care {
            Care::Everything => {
                let meaning = self.expressions.read(line);
                self.take(meaning, line, at);
            }
            Care::Addresses => {
                let printed = self.expressions.addresses(line);
                self.keep(printed, at);
            }
            Care::Last => {}
        }
        self.last.clear();
        self.last.extend(line.chars().take(TOLD_CHARS));
    }

    fn take(&mut self, meaning: Meaning, line: &str, at: Duration) {
        let noted = || Noted {
            line: told(line),
            at,
        };
        match meaning.failure {
            Some(Failure::Dead) => self.died(noted()),
            Some(Failure::Ended) if self.kind == ServiceKind::Server => self.died(noted()),
            Some(Failure::InUse) => {
                self.in_use.get_or_insert_with(noted);
                self.conflict = Some(told(line));
            }
            Some(Failure::Moved) => {
                self.conflict = Some(told(line));
                self.suspected(noted(), true);
            }
            Some(Failure::Grave) => self.suspected(noted(), true),
            Some(Failure::Error) => self.suspected(noted(), false),
            Some(Failure::Ended) | None => {}
        }
        if meaning.ready || meaning.rest {
            self.suspect = None;
        }
        if meaning.ready {
            self.ready.get_or_insert_with(noted);
        }
        if meaning.rest {
            self.rest.get_or_insert_with(noted);
        }
        if meaning.again {
            self.again = Some(at);
            self.suspect = None;
        }
        self.keep(meaning.printed, at);
    }

    /// Whatever was said before no longer holds.
    fn died(&mut self, noted: Noted) {
        self.ready = None;
        self.rest = None;
        self.again = None;
        self.in_use = None;
        self.dead = Some(noted);
    }

    /// A program that does nothing but run may print errors; only grave ones count then, and a
    /// watcher's errors are its work.
    fn suspected(&mut self, noted: Noted, grave: bool) {
        let counts = match self.kind {
            ServiceKind::Server | ServiceKind::Multi => true,
            ServiceKind::Unknown | ServiceKind::Socket => grave,
            ServiceKind::Watcher => false,
        };
        if counts {
            self.suspect.get_or_insert(noted);
        }
    }

    fn keep(&mut self, printed: Vec<Printed>, at: Duration) {
        for it in printed {
            if !self.printed.contains(&it) && self.printed.len() < PRINTED_MAX {
                let first = |least: Weight| {
                    it.weight <= least && self.printed.iter().all(|one| one.weight > least)
                };
                if first(Weight::Url) || first(Weight::Words) {
                    self.printed_at = at;
                }
                self.printed.push(it);
            }
        }
    }
}

/// A line as far as it is told.
pub(super) fn told(line: &str) -> String {
    line.chars().take(TOLD_CHARS).collect()
}
