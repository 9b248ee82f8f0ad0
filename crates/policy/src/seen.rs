//! What was found in a command line.

use crate::word::{ANYTHING, Word, texts};

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

/// A variable that is set, and to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: String,
    /// What is known of its value.
    pub(crate) value: Value,
}

/// What is known of the value a variable gets; the later, the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// It keeps the one it has, or none.
    Kept,
    /// A whole number.
    Number,
    /// One word that is no option and that nothing evaluates.
    Plain,
    /// Anything.
    Unknown,
}

impl Value {
    /// Of a value that is known letter by letter.
    pub(crate) fn of(text: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
            Self::Number
        } else if text.chars().all(plain) && !text.starts_with('-') {
            Self::Plain
        } else {
            Self::Unknown
        }
    }
}

/// A place where the value of a variable decides what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// The variable, or [`ANYTHING`].
    pub(crate) name: String,
    /// The most that is harmless there.
    pub(crate) most: Value,
    /// What it is used for.
    pub(crate) what: String,
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
    /// Variables set.
    pub(crate) variables: Vec<Variable>,
    /// Variables whose values decide what runs.
    pub(crate) uses: Vec<Use>,
}

impl Seen {
    pub(crate) fn set(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        self.variables.push(Variable { name, value });
    }

    pub(crate) fn uses(&mut self, what: &str, most: Value, names: Vec<String>) {
        let uses = names.into_iter().map(|name| Use {
            name,
            most,
            what: what.to_owned(),
        });
        self.uses.extend(uses);
    }

    /// Doubts about every use of a variable whose value could be harmful, now that all that is
    /// set is known.
    pub(crate) fn settle(&mut self) {
        for one in std::mem::take(&mut self.uses) {
            if !self.is_harmless(&one) {
                let name = if one.name == ANYTHING {
                    "…"
                } else {
                    &one.name
                };
                self.doubt_text(format!("the value of '{name}' in {}", one.what), name);
            }
        }
    }

    /// A number must be seen to be set; elsewhere what nobody here sets is the user's own.
    fn is_harmless(&self, one: &Use) -> bool {
        let same = self.variables.iter().filter(|it| it.name == one.name);
        let value = same.map(|it| it.value).max().unwrap_or(Value::Kept);
        let is_set = value > Value::Kept || one.most > Value::Number;
        one.name != ANYTHING && is_set && value <= one.most && !self.sets_by_name(&one.name)
    }

    /// Whether a builtin sets it, or any that cannot be seen.
    fn sets_by_name(&self, name: &str) -> bool {
        /// Builtins that take names of variables.
        const SETTERS: [&str; 8] = [
            "read",
            "getopts",
            "mapfile",
            "readarray",
            "declare",
            "typeset",
            "local",
            "readonly",
        ];
        let names = |word: &Word| {
            let given = word.text.split(['=', '+', '[']).next();
            !word.is_sure() || given == Some(name)
        };
        self.calls.iter().any(|call| {
            let (program, args) = call.words.split_first().unzip();
            program.is_some_and(|it| SETTERS.contains(&it.text.as_str()))
                && args.is_some_and(|args: &[Word]| args.iter().any(names))
        })
    }

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
