//! The result of analysing a command line.

use crate::word::{ANYTHING, CommandWord, texts};

/// One program that would be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// Program and arguments.
    pub(crate) words: Vec<CommandWord>,
    /// Whether it certainly runs; a guess counts for deny rules only.
    pub(crate) certain: bool,
    /// Whether it does nothing but run another command, which is evaluated by itself.
    pub(crate) transparent: bool,
    /// Whether a launcher runs it: only rules that deny see it, and what it runs in turn.
    pub(crate) launched: bool,
    /// Whether any of its words may be what runs, where it is not understood.
    pub(crate) tries_suffixes: bool,
}

impl Invocation {
    pub(crate) const fn new(words: Vec<CommandWord>) -> Self {
        Self {
            words,
            certain: true,
            transparent: false,
            launched: false,
            tries_suffixes: true,
        }
    }

    pub(crate) const fn guess(words: Vec<CommandWord>) -> Self {
        Self {
            words,
            certain: false,
            transparent: false,
            launched: false,
            tries_suffixes: false,
        }
    }

    pub(crate) fn launched(words: Vec<CommandWord>) -> Self {
        Self {
            certain: false,
            launched: true,
            ..Self::new(words)
        }
    }
}

/// A part that was not understood: never allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unresolved {
    /// The reason as text.
    pub(crate) reason: String,
    /// The words concerned.
    pub(crate) words: Vec<String>,
}

/// A file a shell opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// The file name.
    pub(crate) target: CommandWord,
    /// Whether it is written.
    pub(crate) writes: bool,
}

/// A variable that is set, and what is known of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableAssignment {
    /// Its name.
    pub(crate) name: String,
    /// What is known of its value.
    pub(crate) value: ValueClass,
}

/// What is known of the value a variable gets; a later variant means less is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueClass {
    /// It keeps its value, or stays unset.
    Unchanged,
    /// A whole number.
    Number,
    /// One word that is not an option and that nothing evaluates.
    Plain,
    /// Anything.
    Unknown,
}

impl ValueClass {
    /// Classifies a literal value.
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

/// A use of a variable whose value decides what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableUse {
    /// The variable, or [`ANYTHING`].
    pub(crate) name: String,
    /// The most permissive class that is harmless there.
    pub(crate) max_harmless: ValueClass,
    /// What it is used for.
    pub(crate) purpose: String,
}

impl VariableUse {
    /// The uses of the variables in an unknown word.
    pub(crate) fn of_word(
        word: &CommandWord,
        max_harmless: ValueClass,
        purpose: &str,
    ) -> impl Iterator<Item = Self> {
        let names = word.unknown.variables.iter();
        names.map(move |name| Self {
            name: name.clone(),
            max_harmless,
            purpose: purpose.to_owned(),
        })
    }
}

/// The result of an analysis.
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
    /// Uses of variables whose values decide what runs.
    pub(crate) uses: Vec<VariableUse>,
    /// Files that a shell runs first, by the values of `BASH_ENV` and `ENV`.
    pub(crate) startup_files: Vec<String>,
}

/// The variables with the name of a file that a shell runs first.
pub(crate) const STARTUP_VARIABLES: [&str; 2] = ["BASH_ENV", "ENV"];

impl Analysis {
    /// Adds what another analysis found.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.invocations.append(&mut other.invocations);
        self.unresolved.append(&mut other.unresolved);
        self.redirects.append(&mut other.redirects);
        self.variables.append(&mut other.variables);
        self.uses.append(&mut other.uses);
        self.startup_files.append(&mut other.startup_files);
    }

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

    /// Adds an unresolved part for every use of a variable whose value could be harmful, once all
    /// assignments are known.
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

    /// A number must be set in the command line itself; elsewhere a variable that nothing sets has
    /// the user's own value.
    fn is_harmless_use(&self, one: &VariableUse) -> bool {
        let same = self.variables.iter().filter(|it| it.name == one.name);
        let value = same
            .map(|it| it.value)
            .max()
            .unwrap_or(ValueClass::Unchanged);
        let is_set = value > ValueClass::Unchanged || one.max_harmless > ValueClass::Number;
        one.name != ANYTHING && is_set && value <= one.max_harmless && !self.sets_by_name(&one.name)
    }

    /// Whether a builtin sets it, or sets a variable whose name is unknown.
    fn sets_by_name(&self, name: &str) -> bool {
        /// Builtins that take names of variables to set.
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
        /// How many characters of a part that was not understood are reported.
        const TEXT_CHARS_MAX: usize = 120;
        self.unresolved.push(Unresolved {
            reason: reason.into(),
            words: vec![text.chars().take(TEXT_CHARS_MAX).collect()],
        });
    }
}
