//! What was found in a command line.

use crate::word::{Word, texts};

/// One program that would be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Program and arguments.
    pub(crate) words: Vec<Word>,
    /// Whether it is certain to be what runs; a guess only counts for deny rules.
    pub(crate) certain: bool,
    /// Whether it only runs what it is given, which is judged by itself.
    pub(crate) transparent: bool,
}

impl Call {
    pub(crate) const fn new(words: Vec<Word>) -> Self {
        Self {
            words,
            certain: true,
            transparent: false,
        }
    }

    pub(crate) const fn guess(words: Vec<Word>) -> Self {
        Self {
            words,
            certain: false,
            transparent: false,
        }
    }
}

/// Something that was not understood: never allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// What, in words.
    pub(crate) what: String,
    /// Where.
    pub(crate) words: Vec<String>,
}

/// A file a shell opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Which.
    pub(crate) target: Word,
    /// Whether it is written.
    pub(crate) writes: bool,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// What would run.
    pub(crate) calls: Vec<Call>,
    /// What was not understood.
    pub(crate) doubts: Vec<Doubt>,
    /// Files opened.
    pub(crate) redirects: Vec<Redirect>,
    /// Names of variables set.
    pub(crate) variables: Vec<String>,
}

impl Seen {
    pub(crate) fn doubt(&mut self, what: impl Into<String>, words: &[Word]) {
        self.doubts.push(Doubt {
            what: what.into(),
            words: texts(words),
        });
    }

    pub(crate) fn doubt_text(&mut self, what: impl Into<String>, text: &str) {
        /// Characters of what was not understood that are told.
        const TOLD_CHARS: usize = 120;
        self.doubts.push(Doubt {
            what: what.into(),
            words: vec![text.chars().take(TOLD_CHARS).collect()],
        });
    }
}
