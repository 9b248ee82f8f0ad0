//! The command of an execution.

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments, verbatim; never passed through a shell.
    Argv {
        /// The program as the caller gave it: a name looked up in `PATH`, or a path.
        program: ByteString,
        /// The arguments after it.
        args: Vec<ByteString>,
    },
    /// A script for a shell, only where the request names a shell.
    Shell {
        /// The shell's path, for example `/bin/sh`.
        shell: ByteString,
        /// The script, passed to `-c`.
        script: ByteString,
    },
}

/// The length of the longest script in bytes.
pub const SCRIPT_BYTES: usize = 128 * 1024;
/// The length of the longest argument in bytes: the kernel's `MAX_ARG_STRLEN`, less the final NUL.
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Runs a script that was passed in two arguments as if it were one: evaluated in the same
/// shell, without positional parameters of its own.
const SPLIT_SCRIPT: &str = r#"eval "shift 2;$1$2""#;

impl Command {
    /// The argument vector for execve(2), program name first. A script of up to [`SCRIPT_BYTES`]
    /// that is too long for one argument is passed in two.
    #[must_use]
    pub fn argv(&self) -> Vec<ByteString> {
        match self {
            Self::Argv { program, args } => std::iter::once(program).chain(args).cloned().collect(),
            Self::Shell { shell, script } => {
                let mut words = vec![shell.clone(), ByteString::from("-c")];
                if (ARGUMENT_BYTES + 1..=SCRIPT_BYTES).contains(&script.len()) {
                    let (one, two) = script.as_bytes().split_at(ARGUMENT_BYTES);
                    words.extend([ByteString::from(SPLIT_SCRIPT), shell.clone()]);
                    words.extend([ByteString::from(one), ByteString::from(two)]);
                } else {
                    words.push(script.clone());
                }
                words
            }
        }
    }

    /// The command with every word changed.
    #[must_use]
    pub fn map_words(&self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        match self {
            Self::Argv { program, args } => Self::Argv {
                program: change(program),
                args: args.iter().map(change).collect(),
            },
            Self::Shell { shell, script } => Self::Shell {
                shell: change(shell),
                script: change(script),
            },
        }
    }

    /// The program or shell to look up.
    #[must_use]
    pub const fn program(&self) -> &ByteString {
        match self {
            Self::Argv { program, .. } => program,
            Self::Shell { shell, .. } => shell,
        }
    }

    /// One line for people; for a script, the script itself.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Shell { script, .. } => script.to_string(),
            Self::Argv { .. } => {
                let words: Vec<String> = self.argv().iter().map(shell_quote).collect();
                words.join(" ")
            }
        }
    }
}

/// Quotes a word for a POSIX shell; for display, never for execution.
#[must_use]
pub fn shell_quote(word: &ByteString) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
