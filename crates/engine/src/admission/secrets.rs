//! Secrets by name: the spec holds names, the plan values, and what is told of either holds
//! neither a value nor a piece of one.

use ostler_model::{Command, Owner, Spec, Text};

use super::bindings::{Binding, Decision, decide};
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::Settings;

/// Secrets one request may have.
const SECRETS_MAX: usize = 64;
/// Bytes of the shortest value: a shorter one would be replaced wherever a word of output
/// happens to hold it.
const SECRET_MIN_BYTES: usize = 6;

/// One secret with its value. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name, which is also its variable's.
    pub name: String,
    /// What nobody may see.
    pub value: Text,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secret").field(&self.name).finish()
    }
}

/// The secrets of a request, with their values.
///
/// # Errors
/// For names no variable can have, secrets that are bound to others, and secrets that are not
/// there or too short to be kept.
pub fn resolve(
    settings: &Settings,
    owner: &Owner,
    request: &StartRequest,
) -> Result<Vec<Secret>, Error> {
    are_given(settings, &request.secrets, (owner, &request.cwd))?;
    let front = if request.base_env.is_empty() {
        &settings.base_env
    } else {
        &request.base_env
    };
    named(settings, &request.secrets, front)
}

/// The secrets of an execution that an earlier engine admitted; whether they are given is decided
/// anew, for whoever owns it.
///
/// # Errors
/// As [`resolve`].
pub fn again(settings: &Settings, spec: &Spec) -> Result<Vec<Secret>, Error> {
    let names = &spec.env.secrets;
    are_given(settings, names, (&spec.owner, &spec.cwd))?;
    named(settings, names, &settings.base_env)
}

/// As [`again`], for whoever starts the same once more, with what their front brings.
///
/// # Errors
/// As [`resolve`].
pub fn once_more(
    settings: &Settings,
    spec: &Spec,
    (owner, front): (&Owner, &[(Text, Text)]),
) -> Result<Vec<Secret>, Error> {
    let names = &spec.env.secrets;
    are_given(settings, names, (owner, &spec.cwd))?;
    let front = if front.is_empty() {
        &settings.base_env
    } else {
        front
    };
    named(settings, names, front)
}

/// Decided for all of them before one is looked up: a refusal tells of none whether it is there.
fn are_given(
    settings: &Settings,
    names: &[String],
    (owner, cwd): (&Owner, &Text),
) -> Result<(), Error> {
    at_most(names)?;
    let unbound = Binding::default();
    for name in names {
        check(name)?;
        let binding = settings.secrets.bindings.get(name).unwrap_or(&unbound);
        match decide(
            &binding.holders,
            binding.match_project(cwd.as_path()),
            owner,
        ) {
            Decision::Given => {}
            Decision::Withheld => return Err(Error::SecretWithheld { name: name.clone() }),
        }
    }
    Ok(())
}

fn at_most(names: &[String]) -> Result<(), Error> {
    match names.get(SECRETS_MAX) {
        Some(name) => Err(wrong(name, "a request has at most 64 secrets")),
        None => Ok(()),
    }
}

fn named(
    settings: &Settings,
    names: &[String],
    front: &[(Text, Text)],
) -> Result<Vec<Secret>, Error> {
    names
        .iter()
        .map(|name| {
            let found = variable(settings, name, front)
                .or_else(|| settings.secrets.source.as_ref()?.value(name));
            let value = found.ok_or_else(|| wrong(name, &missing(settings)))?;
            if value.len() < SECRET_MIN_BYTES {
                return Err(wrong(
                    name,
                    "its value is shorter than 6 bytes: it could not be kept out of output",
                ));
            }
            Ok(Secret {
                name: name.clone(),
                value,
            })
        })
        .collect()
}

fn check(name: &str) -> Result<(), Error> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if starts && name.bytes().all(letters) {
        return Ok(());
    }
    Err(wrong(
        name,
        "a name has letters, digits and underscores, and begins with no digit",
    ))
}

fn variable(settings: &Settings, name: &str, front: &[(Text, Text)]) -> Option<Text> {
    settings.secrets.prefixes.iter().find_map(|prefix| {
        let wanted = format!("{prefix}{name}");
        let mut all = front.iter().chain(&settings.base_env);
        all.find(|(known, _)| known.as_bytes() == wanted.as_bytes())
            .map(|(_, value)| value.clone())
    })
}

/// Whether a variable holds a secret under its prefix: such ones are never passed on as they
/// are.
#[must_use]
pub fn is_one(settings: &Settings, name: &[u8]) -> bool {
    let mut prefixes = settings.secrets.prefixes.iter();
    prefixes.any(|prefix| !prefix.is_empty() && name.starts_with(prefix.as_bytes()))
}

/// The text with every value replaced by `[secret NAME]`.
#[must_use]
pub fn conceal(text: &Text, secrets: &[Secret]) -> Text {
    swap(text, secrets, |secret| {
        (secret.value.as_bytes().to_vec(), mark(secret))
    })
}

/// The text as it was before [`conceal`].
#[must_use]
pub fn reveal(text: &Text, secrets: &[Secret]) -> Text {
    swap(text, secrets, |secret| {
        (mark(secret), secret.value.as_bytes().to_vec())
    })
}

fn mark(secret: &Secret) -> Vec<u8> {
    format!("[secret {}]", secret.name).into_bytes()
}

fn swap(text: &Text, secrets: &[Secret], pair: impl Fn(&Secret) -> (Vec<u8>, Vec<u8>)) -> Text {
    let mut bytes = text.as_bytes().to_vec();
    for (from, to) in secrets.iter().map(pair) {
        bytes = replace(&bytes, &from, &to);
    }
    Text::from(bytes)
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        if !from.is_empty() && rest.starts_with(from) {
            replaced.extend_from_slice(to);
            rest = &rest[from.len()..];
        } else {
            replaced.push(*first);
            rest = behind;
        }
    }
    replaced
}

/// A command with every word concealed, or revealed.
#[must_use]
pub fn in_command(command: &Command, change: impl Fn(&Text) -> Text) -> Command {
    match command {
        Command::Argv { program, args } => Command::Argv {
            program: change(program),
            args: args.iter().map(change).collect(),
        },
        Command::Shell { shell, script } => Command::Shell {
            shell: change(shell),
            script: change(script),
        },
    }
}

/// Why nobody provides a secret.
fn missing(settings: &Settings) -> String {
    let source = settings.secrets.source.as_ref();
    match source.and_then(|it| it.problem()) {
        Some(problem) => format!("no variable provides it here, and {problem}"),
        None => "nobody provides it here".to_owned(),
    }
}

fn wrong(name: &str, problem: &str) -> Error {
    Error::Secret {
        name: name.to_owned(),
        problem: problem.to_owned(),
    }
}
