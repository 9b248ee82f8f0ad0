//! The allow list (`ALLOWED_COMMANDS`).
//!
//! A list holds bare names and absolute paths. A name is looked up in the trusted path of the
//! settings, never in a request's; a path must be on the list letter by letter. Programs that
//! run other programs are resolved to those (`wrapper.rs`), or refused. A list says what is
//! meant to run; the protection against hostile programs is the isolation level.

use ostler_model::{ByteString, Command};
use thiserror::Error;

use super::environment::can_change_code;
use super::wrapper::{WrappedCommand, wrapped_command};

/// The deepest nesting of wrappers.
const WRAPPERS: usize = 8;

/// Why the allow list refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AllowListError {
    /// The program is not on the list.
    #[error("'{program}' is not an allowed command")]
    NotListed {
        /// The program as given, or as found behind a wrapper.
        program: String,
        /// The list.
        allowed: Vec<String>,
    },
    /// A path where only names are listed, or a path to another file.
    #[error("'{program}' is a path; allowed commands are given by name")]
    Path {
        /// The path as given.
        program: String,
        /// The list.
        allowed: Vec<String>,
    },
    /// A listed wrapper whose wrapped program cannot be determined.
    #[error("'{program}' is allowed, and not with {what}")]
    Wrapper {
        /// The wrapper.
        program: String,
        /// Its arguments.
        what: String,
    },
    /// A variable that changes which code runs.
    #[error("variable '{name}' cannot be set while a list of allowed commands is")]
    Variable {
        /// The variable's name.
        name: String,
    },
    /// A shell script, which cannot be checked against the list.
    #[error("shell scripts are refused while a list of allowed commands is set")]
    Script {
        /// The list.
        allowed: Vec<String>,
    },
}

/// Whether the list permits this command with these variables.
///
/// # Errors
/// The cause, with the list.
pub fn check(
    list: &[String],
    command: &Command,
    set_env: &[(ByteString, ByteString)],
) -> Result<(), AllowListError> {
    let Command::Argv { program, args } = command else {
        return Err(AllowListError::Script {
            allowed: list.to_vec(),
        });
    };
    for (name, _) in set_env {
        check_variable(name.as_bytes())?;
    }
    let words: Vec<&[u8]> = std::iter::once(program)
        .chain(args)
        .map(ByteString::as_bytes)
        .collect();
    check_wrapped(list, &words)
}

/// Checks the program of `format`, and every program it would run in turn.
fn check_wrapped(list: &[String], words: &[&[u8]]) -> Result<(), AllowListError> {
    let mut words = words.to_vec();
    for _ in 0..WRAPPERS {
        let Some((program, args)) = words.split_first() else {
            return Ok(());
        };
        check_listed(list, program)?;
        match wrapped_command(base_name(program), args) {
            WrappedCommand::None => return Ok(()),
            WrappedCommand::Opaque(what) => return Err(wrapper_error(program, what)),
            WrappedCommand::Command { variables, command } => {
                for name in variables {
                    check_variable(name)?;
                }
                words = command;
            }
        }
    }
    Err(wrapper_error(
        words[0],
        format!("more than {WRAPPERS} wrappers"),
    ))
}

fn wrapper_error(program: &[u8], what: String) -> AllowListError {
    AllowListError::Wrapper {
        program: String::from_utf8_lossy(program).into_owned(),
        what,
    }
}

fn check_variable(name: &[u8]) -> Result<(), AllowListError> {
    if can_change_code(name) || name == b"HOME" {
        return Err(AllowListError::Variable {
            name: String::from_utf8_lossy(name).into_owned(),
        });
    }
    Ok(())
}

fn check_listed(list: &[String], program: &[u8]) -> Result<(), AllowListError> {
    if list.iter().any(|allowed| allowed.as_bytes() == program) {
        return Ok(());
    }
    let program_text = String::from_utf8_lossy(program).into_owned();
    let allowed = list.to_vec();
    Err(if program.contains(&b'/') {
        AllowListError::Path {
            program: program_text,
            allowed,
        }
    } else {
        AllowListError::NotListed {
            program: program_text,
            allowed,
        }
    })
}

fn base_name(program: &[u8]) -> &[u8] {
    program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or(program)
}
