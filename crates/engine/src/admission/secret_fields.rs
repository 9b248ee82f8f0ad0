//! The parts of a request that cannot hold the value of a secret: they are stored and shown as they
//! are. Directories and hosts are not among them: a weak password is often a word of their names,
//! and who starts the command names them anyway.

use ostler_backend::secret_form::without_last_line_ends;
use ostler_model::{ByteString, StartOptions};

use crate::error::Error;
use crate::request::StartRequest;
use crate::secret_texts::ResolvedSecret;

/// Refuses a start with the value of a secret where it would be stored as it is.
///
/// # Errors
/// [`Error::SecretExposed`], which names the secret and the field.
pub(crate) fn check(request: &StartRequest, secrets: &[ResolvedSecret]) -> Result<(), Error> {
    check_options(&request.options, secrets)?;
    let record = request.original.as_ref();
    let Some(service) = record.and_then(|it| it.service.as_ref()) else {
        return Ok(());
    };
    let patterns = [&service.ready_pattern, &service.fail_pattern];
    for pattern in patterns.into_iter().flatten() {
        check_text("a pattern of lines", pattern.as_bytes(), secrets)?;
    }
    Ok(())
}

fn check_options(options: &StartOptions, secrets: &[ResolvedSecret]) -> Result<(), Error> {
    for (name, _) in &options.set_env {
        check_text("the name of a variable", name.as_bytes(), secrets)?;
    }
    if let Some(encoding) = &options.encoding {
        check_text("the encoding", encoding.as_bytes(), secrets)?;
    }
    Ok(())
}

/// Refuses a context with the value of a secret in its options, which are stored as they are.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_context(
    options: &StartOptions,
    secrets: &[ResolvedSecret],
) -> Result<(), Error> {
    check_options(options, secrets)?;
    for (_, value) in &options.set_env {
        check_text("a variable of the context", value.as_bytes(), secrets)?;
    }
    for label in &options.labels {
        check_text("a label of the context", label.as_bytes(), secrets)?;
    }
    let description = options.description.as_bytes();
    check_text("the description of the context", description, secrets)
}

/// Refuses a service definition with the value of a secret in one of these texts of it: it is stored
/// as it is.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_definition(
    options: &StartOptions,
    texts: &[ByteString],
    secrets: &[ResolvedSecret],
) -> Result<(), Error> {
    check_options(options, secrets)?;
    let mut texts = texts.iter();
    texts.try_for_each(|text| check_text("the definition", text.as_bytes(), secrets))
}

fn check_text(field: &'static str, text: &[u8], secrets: &[ResolvedSecret]) -> Result<(), Error> {
    let is_in = |secret: &&ResolvedSecret| {
        let value = without_last_line_ends(secret.value.as_bytes());
        !value.is_empty() && text.windows(value.len()).any(|part| part == value)
    };
    match secrets.iter().find(is_in) {
        None => Ok(()),
        Some(secret) => Err(Error::SecretExposed {
            name: secret.name.clone(),
            field,
        }),
    }
}
