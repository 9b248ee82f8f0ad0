//! What an allow list has to know of a program and its arguments: the program they make it run.

use ostler_model::ByteString;

use super::interpreters::{command_option, find_flag};
use super::launched_program::launched_program;
use super::launchers::LAUNCHERS;
use super::options::{CODE_BUILTINS, OPAQUE, OTHER_SHELLS, POSIX_SHELLS, WRAPPERS};
use super::wrapper::{Wrapper, WrapperClass};
use super::{command_wrappers, find, git};
use crate::word::{CommandWord, base_name};

/// Options of `ssh` with settings, some of which name programs of this machine.
const SSH_OPTIONS: [&str; 2] = ["-o", "-F"];

/// A program that another one runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InnerProgram {
    /// None that its arguments name.
    None,
    /// This command, with these variables set.
    Command {
        /// Names of the variables.
        variables: Vec<String>,
        /// Program and arguments.
        words: Vec<ByteString>,
    },
    /// One that cannot be seen: what the program was given.
    Hidden(String),
}

/// The wrappers and launchers whose program is called `name`, in the order they are tried.
pub fn wrappers_of(name: &str) -> impl Iterator<Item = &'static Wrapper<'static>> {
    let all = WRAPPERS.iter().chain(&LAUNCHERS);
    all.filter(move |wrapper| wrapper.name() == name)
}

/// The program that `program` runs with these arguments.
///
/// Code in a language of its own is no program: interpreters are what they are.
#[must_use]
pub fn inner_program(program: &ByteString, args: &[ByteString]) -> InnerProgram {
    let program = program.to_string_lossy();
    let name = base_name(&program);
    let words: Vec<CommandWord> = args.iter().map(CommandWord::from_argument).collect();
    if is_shell(name) {
        return match words.as_slice() {
            [only] if matches!(only.text.as_str(), "--version" | "--help") => InnerProgram::None,
            _ => InnerProgram::Hidden("a script: a shell can run anything".to_owned()),
        };
    }
    let only_reports = |word: &CommandWord| matches!(word.text.as_str(), "-v" | "-V");
    if name == "command" && words.first().is_some_and(only_reports) {
        return InnerProgram::None;
    }
    if let Some(wrapper) = listed_wrapper(name) {
        return look_through(wrapper, args, &words);
    }
    if let Some(launched) = launched_program(name, args, &words) {
        return launched;
    }
    if runs_arguments(name) && !args.is_empty() {
        return InnerProgram::Hidden("arguments: it runs what it is given".to_owned());
    }
    let hidden = match name {
        "git" => git::hidden_program(&words),
        "find" | "gfind" => find_flag(&words, &find::ACTIONS).map(str::to_owned),
        "ssh" => find_flag(&words, &SSH_OPTIONS).map(str::to_owned),
        _ => command_option(name, &words),
    };
    hidden.map_or(InnerProgram::None, InnerProgram::Hidden)
}

fn is_shell(name: &str) -> bool {
    POSIX_SHELLS.contains(&name) || OTHER_SHELLS.contains(&name)
}

/// The wrapper that an allow list looks through.
fn listed_wrapper(name: &str) -> Option<&'static Wrapper<'static>> {
    let is_listed = |it: &&Wrapper<'_>| {
        let class = it.class;
        let through = matches!(
            class,
            WrapperClass::Transparent | WrapperClass::Substitute { .. }
        );
        it.name() == name && through
    };
    WRAPPERS.iter().find(is_listed)
}

/// Whether a program runs what it is given, in ways that are not looked through.
fn runs_arguments(name: &str) -> bool {
    WRAPPERS.iter().any(|it| it.name() == name)
        || OPAQUE.contains(&name)
        || CODE_BUILTINS.contains(&name)
        || ["su", "script", "flock", "watch"].contains(&name)
}

fn look_through(wrapper: &Wrapper<'_>, args: &[ByteString], words: &[CommandWord]) -> InnerProgram {
    let mut inner = super::InnerCommands::default();
    let rest = match command_wrappers::skip_own_words(wrapper, words, &mut inner) {
        Ok(rest) => rest,
        Err(word) => return InnerProgram::Hidden(word),
    };
    let (own, rest) = words.split_at(words.len() - rest.len());
    if let WrapperClass::Substitute { refused } = wrapper.class {
        let is_refused = |word: &&CommandWord| {
            refused.iter().any(|option| {
                let text = word.text.strip_prefix(option);
                text.is_some_and(|it| it.is_empty() || it.starts_with('=') || option.len() == 2)
            })
        };
        if let Some(word) = own.iter().find(is_refused) {
            return InnerProgram::Hidden(word.text.clone());
        }
    }
    let mut command = args.get(own.len()..).unwrap_or_default().to_vec();
    if wrapper.name() == "xargs" {
        if let Some(hidden) = hidden_behind_xargs(own, rest) {
            return InnerProgram::Hidden(hidden);
        }
        if command.is_empty() {
            command.push(ByteString::from("echo"));
        }
    }
    InnerProgram::Command {
        variables: inner.variables.into_iter().map(|it| it.name).collect(),
        words: command,
    }
}

/// Why the program that `xargs` runs cannot be seen: its input is put in place of the name, or
/// becomes arguments of a program that may run one.
fn hidden_behind_xargs(own: &[CommandWord], command: &[CommandWord]) -> Option<String> {
    let program = command.first().map_or("echo", |word| word.text.as_str());
    let mut replaced = own.iter().enumerate().filter_map(|(at, word)| {
        let joined = word.text.strip_prefix("-I")?;
        match joined {
            "" => own.get(at + 1).map(|it| it.text.as_str()),
            joined => Some(joined),
        }
    });
    if replaced.any(|text| program.contains(text)) {
        return Some("-I".to_owned());
    }
    let name = base_name(program);
    let may_run = is_shell(name)
        || runs_arguments(name)
        || ["git", "find", "gfind", "ssh"].contains(&name)
        || !super::interpreters::command_options(name).is_empty();
    may_run.then(|| name.to_owned())
}
