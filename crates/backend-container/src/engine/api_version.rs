//! The version of the API in the paths of requests.
//!
//! The client library agrees on a version and then sends paths without one, which means the newest
//! that the engine has; its own models are of another one.

use bollard::{BollardRequest, ClientVersion, Docker};
use http::Uri;
use http::uri::PathAndQuery;

/// The client, whose requests are of this version.
pub(super) fn with_version(docker: Docker, version: ClientVersion) -> Docker {
    let prefix = format!("/v{version}");
    docker.with_request_modifier(move |mut request: BollardRequest| {
        if let Some(uri) = prefixed(request.uri(), &prefix) {
            *request.uri_mut() = uri;
        }
        request
    })
}

/// The URI with the prefix; none where it has it already, or cannot have it.
fn prefixed(uri: &Uri, prefix: &str) -> Option<Uri> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path.starts_with("/v1.") {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{prefix}{path}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_version() {
        let uri: Uri = "unix://2f/images/a/json?x=1".parse().expect("valid");
        let with_version = prefixed(&uri, "/v1.41").expect("changed");
        assert_eq!(with_version, "unix://2f/v1.41/images/a/json?x=1");
        assert_eq!(prefixed(&with_version, "/v1.41"), None);
    }
}
