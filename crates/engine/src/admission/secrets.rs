//! Secrets by name: the spec holds names, the launch plan holds values.

use ostler_backend::secret_form::without_last_line_ends;
use ostler_model::{ByteString, Owner, Spec};

use crate::error::{AllowListError, ArgumentError, Error, ProgramError};
use crate::request::StartRequest;
use crate::secret_bindings::{SecretAccess, SecretBinding, secret_access};
use crate::secret_texts::{ResolvedSecret, SecretTexts};
use crate::settings::Settings;

/// The most secrets of one request.
const SECRETS_MAX: usize = 64;
/// The shortest value, in bytes: a shorter one would be redacted wherever a word of output happens
/// to contain it.
const SECRET_MIN_BYTES: usize = 6;

/// Resolves the secrets of a request to their values.
///
/// # Errors
/// For invalid variable names, secrets that are bound to others, and secrets that do not exist or
/// are too short to be redacted.
pub fn resolve(
    settings: &Settings,
    owner: &Owner,
    request: &StartRequest,
) -> Result<Vec<ResolvedSecret>, Error> {
    check_access(settings, &request.options.secrets, owner, &request.cwd)?;
    let client_env = if request.base_env.is_empty() {
        &settings.base_env
    } else {
        &request.base_env
    };
    look_up_values(settings, &request.options.secrets, client_env)
}

/// The secrets of an execution that an earlier engine admitted; whether they may be used is decided
/// again, for its current owner.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_for_relaunch(
    settings: &Settings,
    spec: &Spec,
) -> Result<Vec<ResolvedSecret>, Error> {
    let names = &spec.env.secrets;
    check_access(settings, names, &spec.owner, &spec.cwd)?;
    look_up_values(settings, names, &settings.base_env)
}

/// As [`resolve_for_relaunch`], for a caller that starts the same again with its own environment.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_for_restart(
    settings: &Settings,
    spec: &Spec,
    owner: &Owner,
    client_env: &[(ByteString, ByteString)],
) -> Result<Vec<ResolvedSecret>, Error> {
    let names = &spec.env.secrets;
    check_access(settings, names, owner, &spec.cwd)?;
    let client_env = if client_env.is_empty() {
        &settings.base_env
    } else {
        client_env
    };
    look_up_values(settings, names, client_env)
}

/// Checked for all secrets before any is looked up: a refusal does not reveal whether one exists.
///
/// # Errors
/// As [`resolve`], without looking a value up.
pub(crate) fn check_access(
    settings: &Settings,
    names: &[String],
    owner: &Owner,
    cwd: &ByteString,
) -> Result<(), Error> {
    check_count(names)?;
    let default_binding = SecretBinding::default();
    for name in names {
        check_name(name)?;
        let binding = settings
            .secrets
            .bindings
            .get(name)
            .unwrap_or(&default_binding);
        match secret_access(
            &binding.holders,
            binding.match_project(cwd.as_path()),
            owner,
        ) {
            SecretAccess::Granted => {}
            SecretAccess::Denied => return Err(Error::SecretDenied { name: name.clone() }),
        }
    }
    Ok(())
}

fn check_count(names: &[String]) -> Result<(), Error> {
    match names.get(SECRETS_MAX) {
        Some(name) => Err(invalid(name, "a request has at most 64 secrets")),
        None => Ok(()),
    }
}

fn look_up_values(
    settings: &Settings,
    names: &[String],
    client_env: &[(ByteString, ByteString)],
) -> Result<Vec<ResolvedSecret>, Error> {
    names
        .iter()
        .map(|name| {
            let found = value_from_env(settings, name, client_env)
                .or_else(|| settings.secrets.source.as_ref()?.value(name));
            let value = found.ok_or_else(|| Error::Secret {
                name: name.clone(),
                problem: unavailable_reason(settings),
                is_unset: true,
            })?;
            if without_last_line_ends(value.as_bytes()).len() < SECRET_MIN_BYTES {
                return Err(invalid(
                    name,
                    "its value is shorter than 6 bytes: it could not be kept out of output",
                ));
            }
            Ok(ResolvedSecret {
                name: name.clone(),
                value,
            })
        })
        .collect()
}

/// The secrets of these names that the engine knows, or that the client's environment holds.
pub(crate) fn known_secrets(
    settings: &Settings,
    names: &[String],
    client_env: &[(ByteString, ByteString)],
) -> Vec<ResolvedSecret> {
    let names = names.iter().map(std::slice::from_ref);
    names
        .filter_map(|name| look_up_values(settings, name, client_env).ok())
        .flatten()
        .collect()
}

fn check_name(name: &str) -> Result<(), Error> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if starts && name.bytes().all(letters) {
        return Ok(());
    }
    Err(invalid(
        name,
        "a name has letters, digits and underscores, and begins with no digit",
    ))
}

fn value_from_env(
    settings: &Settings,
    name: &str,
    client_env: &[(ByteString, ByteString)],
) -> Option<ByteString> {
    settings.secrets.prefixes.iter().find_map(|prefix| {
        let variable_name = format!("{prefix}{name}");
        let mut all = client_env.iter().chain(&settings.base_env);
        all.find(|(known, _)| known.as_bytes() == variable_name.as_bytes())
            .map(|(_, value)| value.clone())
    })
}

/// Whether a variable holds a secret under its prefix: such variables are never passed on
/// unchanged.
#[must_use]
pub fn is_secret_variable(settings: &Settings, name: &[u8]) -> bool {
    let mut prefixes = settings.secrets.prefixes.iter();
    prefixes.any(|prefix| !prefix.is_empty() && name.starts_with(prefix.as_bytes()))
}

/// Why there is no provider for secrets.
fn unavailable_reason(settings: &Settings) -> String {
    let source = settings.secrets.source.as_ref();
    match source.and_then(|it| it.problem()) {
        Some(problem) => format!("no variable provides it here, and {problem}"),
        None => "nobody provides it here".to_owned(),
    }
}

fn invalid(name: &str, problem: &str) -> Error {
    Error::Secret {
        name: name.to_owned(),
        problem: problem.to_owned(),
        is_unset: false,
    }
}

/// The same error, with every secret's value replaced in the parts that repeat the request.
#[must_use]
pub(crate) fn redact_error(mut error: Error, secrets: &[ResolvedSecret]) -> Error {
    let texts = SecretTexts::new(secrets);
    let redact_text = |field: &mut String| {
        *field = texts.redact(&ByteString::from(field.as_str())).to_string();
    };
    if let Error::Program(
        ProgramError::NotFound { program, .. }
        | ProgramError::NotAFile { program, .. }
        | ProgramError::Permission { program },
    )
    | Error::NotAllowed(
        AllowListError::NotListed { program, .. }
        | AllowListError::Path { program, .. }
        | AllowListError::Wrapper { program, .. },
    )
    | Error::InvalidSandbox { given: program, .. }
    | Error::Denied {
        reason: program, ..
    } = &mut error
    {
        redact_text(program);
    }
    if let Error::Argument(
        ArgumentError::Directory { path, .. } | ArgumentError::DirectoryPermission { path },
    ) = &mut error
    {
        let redacted = texts.redact(&ByteString::from(path.as_path()));
        *path = redacted.as_path().to_owned();
    }
    error
}
