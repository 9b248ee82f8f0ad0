//! Which routes change something in projects: a token that may only read is refused there.

use axum::http::Method;

/// Routes that change nothing, though their method says so.
const READ_ROUTES: &[&str] = &[
    "/api/v1/detect",
    "/api/v1/executions/{id}/wait",
    "/api/v1/policy/check",
];
/// Routes whose connections take what is typed or answered, though `GET` opens them.
const WRITE_ROUTES: &[&str] = &[
    "/api/v1/executions/{id}/terminal",
    "/api/v1/interactions/events",
];
/// Routes that need another scope, the daemon's socket, or none; and the start of a template, which
/// needs what the template requires.
const CHECKED_ELSEWHERE: &[&str] = &[
    "/api/v1/history/rebuild",
    "/api/v1/projects/{id}/execute",
    "/api/v1/shutdown",
    "/api/v1/tokens",
    "/api/v1/tokens/{name}",
    "/api/v1/web/codes",
    "/api/v1/web/session",
];

/// Whether a request with this method changes something. `route` is the path as it was declared; a
/// prefix that everything is served under may precede it.
pub(crate) fn writes(method: &Method, route: &str) -> bool {
    let is_one_of = |routes: &[&str]| routes.iter().any(|it| route.ends_with(it));
    let is_reading = method.is_safe() || is_one_of(READ_ROUTES);
    (!is_reading || is_one_of(WRITE_ROUTES)) && !is_one_of(CHECKED_ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_table_writes_unless_its_method_is_safe() {
        assert!(!writes(&Method::GET, "/api/v1/new"));
        assert!(!writes(&Method::HEAD, "/api/v1/new"));
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            assert!(writes(&method, "/api/v1/new"), "{method}");
        }
    }

    #[test]
    fn tables_hold_below_a_prefix_too() {
        assert!(!writes(&Method::POST, "/below/api/v1/executions/{id}/wait"));
        assert!(writes(
            &Method::GET,
            "/below/api/v1/executions/{id}/terminal"
        ));
        assert!(!writes(&Method::POST, "/below/api/v1/shutdown"));
        assert!(writes(&Method::POST, "/below/api/v1/executions/{id}/stop"));
    }
}
