//! The project that a request names.

use axum::http::HeaderMap;

use super::HttpProblem;

/// The header with the project of what a request starts, for tokens that name several projects.
pub const PROJECT_HEADER: &str = "ostler-project";

/// The project that the headers name, which may be none.
///
/// # Errors
/// When the header is there twice, or is not UTF-8.
pub(super) fn requested_project(headers: &HeaderMap) -> Result<Option<&str>, HttpProblem> {
    let mut values = headers.get_all(PROJECT_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => std::str::from_utf8(name.as_bytes())
            .map(Some)
            .map_err(|_| HttpProblem::value(format!("header '{PROJECT_HEADER}' is not UTF-8"))),
        (Some(_), Some(_)) => Err(HttpProblem::value(format!(
            "header '{PROJECT_HEADER}' is there twice; allowed: once"
        ))),
    }
}
