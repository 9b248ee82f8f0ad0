//! What a start in a context may ask for.

use std::path::Path;

use ostler_model::Lifetime;

use super::record::ContextRecord;
use crate::error::{ArgumentError, ContextError};
use crate::request::StartRequest;

/// Refuses services, which have no time limit.
pub(super) fn check_lifetime(request: &StartRequest) -> Result<(), ArgumentError> {
    match request.lifetime {
        Some(Lifetime::Service { .. }) => Err(ArgumentError::Invalid {
            what: "context".to_owned(),
            problem: "a service does not run in one; allowed: a finite command or a terminal",
        }),
        Some(Lifetime::Finite { .. }) | None => Ok(()),
    }
}

/// Checks that the working directory is that of the context, or one below it; that of the context
/// where the request names none.
pub(super) fn check_directory(
    record: &ContextRecord,
    request: &mut StartRequest,
) -> Result<(), ContextError> {
    if request.cwd.is_empty() {
        request.cwd = record.directory.clone();
    }
    let (context, cwd) = (record.directory.as_path(), request.cwd.as_path());
    if cwd == context {
        return Ok(());
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let is_inside = real(context)
        .zip(real(cwd))
        .is_some_and(|(context, cwd)| cwd.starts_with(context));
    if is_inside {
        return Ok(());
    }
    Err(ContextError::Value {
        field: "cwd",
        given: ostler_model::visible(&request.cwd.to_string()).into_owned(),
        problem: format!(
            "it is not in the directory of context {}; allowed: '{}' and below",
            record.id,
            context.display()
        ),
    })
}
