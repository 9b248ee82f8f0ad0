//! Responses and problems.

use ostler_model::ErrorCode;

use ostler_interface::http::HttpProblem;

/// What a route answers.
pub(super) type RestResult<T> = Result<T, HttpProblem>;

/// No such route.
pub(super) async fn no_route() -> HttpProblem {
    HttpProblem::value("there is no such route").with_status(404)
}

/// A route that does not know this method.
pub(super) async fn no_method() -> HttpProblem {
    HttpProblem::value("the route does not know this method").with_status(405)
}

/// It runs, and only what has ended can be cleaned.
pub(super) fn still_running_problem(id: &str) -> HttpProblem {
    let hint = Some("stop it first".to_owned());
    HttpProblem::new(
        ErrorCode::ProcessClean,
        format!("{id} is still running"),
        hint,
    )
}
