//! What was found in a command line.

use crate::word::{ANYTHING, CommandWord, texts};

/// One program that would be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// Program and arguments.
    pub(crate) words: Vec<CommandWord>,
    /// Whether it is certain to be what runs; a guess only counts for deny rules.
    pub(crate) certain: bool,
    /// Whether it only runs what it is given, which is judged by itself.
    pub(crate) transparent: bool,
}

impl Invocation {
    pub(crate) const fn new(words: Vec<CommandWord>) -> Self {
        Self {
            words,
            certain: true,
            transparent: false,
        }
    }

    pub(crate) const fn guess(words: Vec<CommandWord>) -> Self {
        Self {
            words,
            certain: false,
            transparent: false,
        }
    }
}

/// Something that was not understood: never allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unresolved {
    /// What, in words.
    pub(crate) reason: String,
    /// Where.
    pub(crate) words: Vec<String>,
}

/// A file a shell opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Which.
    pub(crate) target: CommandWord,
    /// Whether it is written.
    pub(crate) writes: bool,
}

/// A variable that is set, and to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableAssignment {
    /// Its name.
    pub(crate) name: String,
    /// What is known of its value.
    pub(crate) value: ValueClass,
}

/// What is known of the value a variable gets; the later, the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueClass {
    /// It keeps the one it has, or none.
    Unchanged,
    /// A whole number.
    Number,
    /// One word that is no option and that nothing evaluates.
    Plain,
    /// Anything.
    Unknown,
}

impl ValueClass {
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
pub(crate) struct VariableUse {
    /// The variable, or [`ANYTHING`].
    pub(crate) name: String,
    /// The most that is harmless there.
    pub(crate) max_harmless: ValueClass,
    /// What it is used for.
    pub(crate) purpose: String,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Analysis {
    /// What would run.
    pub(crate) invocations: Vec<Invocation>,
    /// What was not understood.
    pub(crate) unresolved: Vec<Unresolved>,
    /// Files opened.
    pub(crate) redirects: Vec<Redirect>,
    /// Variables set.
    pub(crate) variables: Vec<VariableAssignment>,
    /// Variables whose values decide what runs.
    pub(crate) uses: Vec<VariableUse>,
}

impl Analysis {
    pub(crate) fn add_variable(&mut self, name: impl Into<String>, value: ValueClass) {
        let name = name.into();
        self.variables.push(VariableAssignment { name, value });
    }

    pub(crate) fn add_uses(&mut self, purpose: &str, max_harmless: ValueClass, names: Vec<String>) {
        let uses = names.into_iter().map(|name| VariableUse {
            name,
            max_harmless,
            purpose: purpose.to_owned(),
        });
        self.uses.extend(uses);
    }

    /// Doubts about every use of a variable whose value could be harmful, now that all that is
    /// set is known.
    pub(crate) fn resolve_uses(&mut self) {
        for one in std::mem::take(&mut self.uses) {
            if !self.is_harmless_use(&one) {
                let name = if one.name == ANYTHING {
                    "…"
                } else {
                    &one.name
                };
                self.add_unresolved_text(format!("the value of '{name}' in {}", one.purpose), name);
            }
        }
    }

    /// A number must be seen to be set; elsewhere what nobody here sets is the user's own.
    fn is_harmless_use(&self, one: &VariableUse) -> bool {
        let same = self.variables.iter().filter(|it| it.name == one.name);
        let value = same
            .map(|it| it.value)
            .max()
            .unwrap_or(ValueClass::Unchanged);
        let is_set = value > ValueClass::Unchanged || one.max_harmless > ValueClass::Number;
        one.name != ANYTHING && is_set && value <= one.max_harmless && !self.sets_by_name(&one.name)
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
        let names = |word: &CommandWord| {
            let variable = word.text.split(['=', '+', '[']).next();
            !word.is_certain() || variable == Some(name)
        };
        self.invocations.iter().any(|call| {
            let (program, args) = call.words.split_first().unzip();
            program.is_some_and(|it| SETTERS.contains(&it.text.as_str()))
                && args.is_some_and(|args: &[CommandWord]| args.iter().any(names))
        })
    }

    pub(crate) fn add_unresolved(&mut self, reason: impl Into<String>, words: &[CommandWord]) {
        self.unresolved.push(Unresolved {
            reason: reason.into(),
            words: texts(words),
        });
    }

    pub(crate) fn add_unresolved_text(&mut self, reason: impl Into<String>, text: &str) {
        /// Characters of what was not understood that are told.
        const TEXT_CHARS_MAX: usize = 120;
        self.unresolved.push(Unresolved {
            reason: reason.into(),
            words: vec![text.chars().take(TEXT_CHARS_MAX).collect()],
        });
    }
}
