//! How the words of a wrapper are told from the command it runs.

use std::borrow::Cow;

use super::launchers::{creator_program, package_program};

/// A program that runs the command in its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Wrapper<'a> {
    /// Its name and subcommands; options may stand between them.
    pub words: &'a [&'a str],
    /// What it does besides running the command.
    pub class: WrapperClass,
    /// Its options without a value that leave the command as it is.
    pub flags: &'a [&'a str],
    /// Its options whose value is the next word, or joined, and that leave the command as it is.
    pub valued: &'a [&'a str],
    /// More options with a value: a policy does not look past them.
    pub other_valued: &'a [&'a str],
    /// The options, of those with a value, that name a directory to change to.
    pub directories: &'a [&'a str],
    /// How many operands precede the command.
    pub operands: usize,
    /// Whether `NAME=value` words may precede the command.
    pub assigns: bool,
    /// Whether the command has to follow `--`.
    pub needs_dashes: bool,
    /// What the command's first word names.
    pub first_word: FirstWord,
    /// Whether options at the end are its own unless they follow `--`.
    pub keeps_options: bool,
}

/// What the first word of a wrapped command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWord {
    /// A program.
    Program,
    /// A package, whose program is run: `vite@5`.
    Package,
    /// What a package named after it makes: `npm init vite` runs `create-vite`.
    Creation,
}

/// What a wrapper does besides running its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperClass {
    /// Nothing that matters: the command is judged alone, and an allow list looks through it.
    Transparent,
    /// The same for a policy; an allow list refuses it with arguments.
    Timing,
    /// It changes the user, the root, or what a program is: it is judged, too.
    Privileged,
    /// The same for a policy; an allow list looks through it, except for these options.
    Substitute {
        /// The options that start a login shell, keep variables or change the directory.
        refused: &'static [&'static str],
    },
    /// Its options are not known well enough: a policy does not look through it.
    Opaque,
    /// It runs the programs of a package or of an environment: it is judged itself, rules that deny
    /// see its command, and an allow list judges both.
    Launcher,
}

/// Where the command of a wrapper begins, and what the wrapper's own words say about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrapperMatch<'w> {
    /// The index of the command's program; the number of words where there is none.
    pub command_at: usize,
    /// The directories it changes to, in order.
    pub directories: Vec<&'w str>,
    /// The variables it sets.
    pub variables: Vec<(&'w str, &'w str)>,
    /// The indices of words that are the value of an option.
    pub values_at: Vec<usize>,
    /// The index of the first option that is not among [`Wrapper::flags`] and [`Wrapper::valued`].
    pub unknown_at: Option<usize>,
}

impl FirstWord {
    /// The program that is run for this word.
    #[must_use]
    pub fn program(self, word: &str) -> Cow<'_, str> {
        match self {
            Self::Program => word.into(),
            Self::Package => package_program(word).into(),
            Self::Creation => creator_program(word).into(),
        }
    }
}

impl<'a> Wrapper<'a> {
    /// A wrapper without options.
    #[must_use]
    pub const fn new(words: &'a [&'a str], class: WrapperClass) -> Self {
        Self {
            words,
            class,
            flags: &[],
            valued: &[],
            other_valued: &[],
            directories: &[],
            operands: 0,
            assigns: false,
            needs_dashes: false,
            first_word: FirstWord::Program,
            keeps_options: false,
        }
    }

    /// Its program's name.
    pub(super) fn name(&self) -> &'a str {
        self.words.first().copied().unwrap_or_default()
    }

    /// Finds the command among `words`, which begin with the wrapper's program; none where its
    /// subcommands or `--` are missing.
    #[must_use]
    pub fn match_words<'w>(&self, words: &[&'w str]) -> Option<WrapperMatch<'w>> {
        let mut found = WrapperMatch {
            command_at: 1,
            ..WrapperMatch::default()
        };
        for subcommand in self.words.iter().skip(1) {
            self.skip_options(words, &mut found);
            if words.get(found.command_at)? != subcommand {
                return None;
            }
            found.command_at += 1;
        }
        self.skip_options(words, &mut found);
        if self.needs_dashes {
            let rest = words.get(found.command_at..)?;
            found.command_at += rest.iter().position(|word| *word == "--")? + 1;
        } else {
            self.skip_operands(words, &mut found);
        }
        found.command_at = found.command_at.min(words.len());
        Some(found)
    }

    /// Whether the subcommands are among `words`, which begin with the wrapper's program; also where
    /// an unknown option before one of them may have it as its value.
    pub(super) fn may_match(&self, words: &[&str]) -> bool {
        let mut found = WrapperMatch {
            command_at: 1,
            ..WrapperMatch::default()
        };
        for subcommand in self.words.iter().skip(1) {
            self.skip_options(words, &mut found);
            let rest = words.get(found.command_at..).unwrap_or_default();
            if rest.first() != Some(subcommand) {
                return found.unknown_at.is_some() && rest.contains(subcommand);
            }
            found.command_at += 1;
        }
        true
    }

    fn skip_options<'w>(&self, words: &[&'w str], found: &mut WrapperMatch<'w>) {
        while let Some(word) = words.get(found.command_at) {
            let is_option = word.len() > 1 && word.starts_with('-') && *word != "--";
            if !is_option && !self.flags.contains(word) {
                if *word == "-" {
                    found.unknown_at.get_or_insert(found.command_at);
                }
                return;
            }
            self.skip_option(words, word, found);
        }
    }

    /// Skips one option, with its value.
    fn skip_option<'w>(&self, words: &[&'w str], word: &'w str, found: &mut WrapperMatch<'w>) {
        let at = found.command_at;
        found.command_at += 1;
        if self.flags.contains(&word) || self.is_niceness(word) {
            return;
        }
        let known = [self.valued, self.other_valued, self.directories];
        let mut known = known.into_iter().flatten().copied();
        let option = known.find_map(|option| Some((option, joined_value(word, option)?)));
        let Some((option, joined)) = option else {
            found.unknown_at.get_or_insert(at);
            return;
        };
        let value = joined.or_else(|| {
            found.command_at += 1;
            found.values_at.push(at + 1);
            words.get(at + 1).copied()
        });
        if !self.valued.contains(&option) {
            found.unknown_at.get_or_insert(at);
        }
        if self.directories.contains(&option) {
            found.directories.extend(value);
        }
    }

    /// `nice -5`
    fn is_niceness(&self, word: &str) -> bool {
        let digits = word.strip_prefix('-').unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        is_number && self.name() == "nice"
    }

    /// Skips `--`, operands and assignments; no option follows the first of them.
    fn skip_operands<'w>(&self, words: &[&'w str], found: &mut WrapperMatch<'w>) {
        let skip_dashes = |found: &mut WrapperMatch<'w>| {
            let is_dashes = words.get(found.command_at) == Some(&"--");
            found.command_at += usize::from(is_dashes);
        };
        skip_dashes(found);
        let mut operands = self.operands;
        while let Some(word) = words.get(found.command_at) {
            if let (true, Some(pair)) = (self.assigns, split_assignment(word)) {
                found.variables.push(pair);
            } else if operands > 0 {
                operands -= 1;
            } else {
                break;
            }
            found.command_at += 1;
        }
        let is_lax = matches!(self.class, WrapperClass::Opaque | WrapperClass::Launcher);
        if is_lax && self.operands > 0 {
            skip_dashes(found);
        }
    }
}

/// Whether `word` is `option`: with the value that is joined to it, or without.
fn joined_value<'w>(word: &'w str, option: &str) -> Option<Option<&'w str>> {
    let rest = word.strip_prefix(option)?;
    if rest.is_empty() {
        return Some(None);
    }
    if option.starts_with("--") {
        return rest.strip_prefix('=').map(Some);
    }
    Some(Some(rest.strip_prefix('=').unwrap_or(rest)))
}

fn split_assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use crate::wrappers_of;

    /// The command behind the first wrapper that matches, and the option that is not known.
    fn matched(line: &str) -> Option<(String, Option<&str>)> {
        let words: Vec<&str> = line.split(' ').collect();
        let found = wrappers_of(words[0]).find_map(|it| it.match_words(&words))?;
        let unknown = found.unknown_at.map(|at| words[at]);
        Some((words[found.command_at..].join(" "), unknown))
    }

    #[test]
    fn own_words_end_where_the_command_begins() {
        for (line, command, unknown) in [
            ("env -i A=1 B=2 x -y", "x -y", None),
            ("env - x", "x", None),
            ("env -C /tmp --unset=A -- x", "x", None),
            ("env -S x", "x", Some("-S")),
            ("timeout -k 1 5 x -k 2", "x -k 2", None),
            ("timeout -k", "", None),
            ("timeout 5 -- x", "-- x", None),
            ("nice -5 x", "x", None),
            ("nice -n5 x", "x", None),
            ("stdbuf -oL -e 0 x", "x", None),
            ("sudo -u x A=1 y", "y", None),
            ("sudo -T 5 y", "y", Some("-T")),
            ("sudo --unknown y", "y", Some("--unknown")),
            ("xargs -I {} x {}", "x {}", None),
            ("chpst -u x y", "y", None),
            ("setarch x86_64 -- y", "y", None),
            ("npm --loglevel error exec -- vite", "vite", None),
            ("mise exec node@20 -- vite", "vite", None),
            ("dotenvx run -fk x -- vite", "vite", None),
        ] {
            assert_eq!(matched(line), Some((command.to_owned(), unknown)), "{line}");
        }
        for line in ["npm run dev", "mise exec vite", "unknown x"] {
            assert_eq!(matched(line), None, "{line}");
        }
    }

    #[test]
    fn directories_and_variables_are_those_of_own_words() {
        let words = [
            "env",
            "-C",
            "/a",
            "--chdir=b",
            "A=1",
            "x",
            "-C",
            "/c",
            "B=2",
        ];
        let found = wrappers_of("env").find_map(|it| it.match_words(&words));
        let found = found.expect("env");
        assert_eq!(found.directories, ["/a", "b"]);
        assert_eq!(found.variables, [("A", "1")]);
        assert_eq!(found.values_at, [2]);
    }
}
