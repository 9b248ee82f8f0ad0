//! The allow list (`ALLOWED_COMMANDS`).
//!
//! A list holds bare names and absolute paths. A name is looked up in the trusted path of the
//! settings, never in a request's; a path must be on the list literally. Programs that run other
//! programs are resolved to those ([`inner_program`]), or refused. The list is no protection against
//! hostile programs; the isolation level is.

use ostler_model::{ByteString, Command};
use ostler_policy::{InnerProgram, inner_program};

use super::environment::can_change_code;
pub use crate::error::AllowListError;

/// The deepest nesting of wrappers.
const WRAPPERS: usize = 8;

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
    check_chain(list, program, args)
}

/// Checks a program, and every program it would run in turn.
fn check_chain(
    list: &[String],
    program: &ByteString,
    args: &[ByteString],
) -> Result<(), AllowListError> {
    let mut words: Vec<ByteString> = std::iter::once(program).chain(args).cloned().collect();
    for _ in 0..WRAPPERS {
        let Some((program, args)) = words.split_first() else {
            return Ok(());
        };
        check_listed(list, program.as_bytes())?;
        match inner_program(program, args) {
            InnerProgram::None => return Ok(()),
            InnerProgram::Hidden(what) => return Err(wrapper_error(program, what)),
            InnerProgram::Command {
                variables,
                words: inner,
            } => {
                for name in variables {
                    check_variable(name.as_bytes())?;
                }
                words = inner;
            }
        }
    }
    let program = words.first().cloned().unwrap_or_default();
    let what = format!("more than {WRAPPERS} wrappers");
    Err(wrapper_error(&program, what))
}

fn wrapper_error(program: &ByteString, what: String) -> AllowListError {
    AllowListError::Wrapper {
        program: program.to_string_lossy().into_owned(),
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
