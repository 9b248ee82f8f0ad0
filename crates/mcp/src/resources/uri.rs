//! Names of resources.

use ostler_engine::ExecutionInfo;
use ostler_model::{Cursor, ErrorCode};
use rmcp::ErrorData;
use serde_json::json;

use super::log_query::LogResourceQuery;
use crate::reply::ResourceLink;
use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// What all names begin with. The bare scheme is the list of executions.
pub(super) const SCHEME: &str = "proc://";
/// The URI of the session's notifications.
pub(super) const NEWS: &str = "proc://news";
/// The resource of one execution.
pub(super) const DETAIL_TEMPLATE: &str = "proc://{id}";
/// The resource of its output.
pub(super) const LOG_TEMPLATE: &str = "proc://{id}/log{?stream,tail,cursor,limit}";
/// The screen of its terminal.
pub(super) const SCREEN_TEMPLATE: &str = "proc://{id}/screen";
/// The events of an execution.
pub(super) const EVENTS_TEMPLATE: &str = "proc://{id}/events";
pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain";
/// The longest URI that is parsed, in bytes.
const URI_BYTES: usize = 1_024;

/// The target of a URI. Ids are as given: short or full.
#[derive(Debug)]
pub(crate) enum ResourceTarget {
    /// The list of executions.
    List,
    /// The session's notifications.
    News,
    /// One execution.
    Detail(String),
    /// Its output.
    Log(String, LogResourceQuery),
    /// Its events.
    Events(String),
    /// The screen of its terminal.
    Screen(String),
}

/// The protocol error for a URI that cannot be served.
#[derive(Debug)]
pub(crate) struct UriError(ErrorData);

impl ResourceTarget {
    /// Parses `uri`.
    ///
    /// # Errors
    /// When it is not one of the server's URIs, or its query is invalid.
    pub(crate) fn parse(uri: &str) -> Result<Self, UriError> {
        let path = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= URI_BYTES);
        let path = path.ok_or_else(|| UriError::unknown(uri))?;
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let target = match path.split_once('/') {
            None if path.is_empty() => Self::List,
            None if path == "news" => Self::News,
            None => Self::Detail(path.to_owned()),
            Some((id, "log")) => return Self::parse_log(uri, id, query),
            Some((id, "events")) => Self::Events(id.to_owned()),
            Some((id, "screen")) => Self::Screen(id.to_owned()),
            Some(_) => return Err(UriError::unknown(uri)),
        };
        match query {
            None => Ok(target),
            Some(_) => Err(UriError::unknown(uri)),
        }
    }

    fn parse_log(uri: &str, id: &str, query: Option<&str>) -> Result<Self, UriError> {
        let table = LogResourceQuery::PARAMETERS;
        let arguments = Arguments::check_query(table, query.unwrap_or_default());
        let query = arguments
            .map_err(ApiError::from)
            .and_then(LogResourceQuery::new);
        let query = query.map_err(|failure| UriError::from_failure(uri, failure))?;
        Ok(Self::Log(id.to_owned(), query))
    }
}

impl UriError {
    /// The error for an unknown or foreign resource.
    pub(super) fn unknown(uri: &str) -> Self {
        let shortened: String = uri.chars().take(URI_BYTES).collect();
        let message = "resource not found or access denied";
        Self(ErrorData::resource_not_found(
            message,
            Some(json!({"uri": shortened})),
        ))
    }

    /// The error for a request that failed, with this URI.
    pub(crate) fn from_failure(uri: &str, failure: ApiError) -> Self {
        if [ErrorCode::ProcessNotFound, ErrorCode::SessionNotFound].contains(&failure.code) {
            return Self::unknown(uri);
        }
        Self(to_error_data(&failure))
    }
}

impl From<UriError> for ErrorData {
    fn from(error: UriError) -> Self {
        error.0
    }
}

/// A failure outside of tools, where only a protocol error is possible.
fn to_error_data(failure: &ApiError) -> ErrorData {
    let code = rmcp::model::ErrorCode(failure.code.info().rpc);
    let data = serde_json::Value::Object(failure.fields());
    ErrorData::new(code, failure.text(), Some(data))
}

/// The error for an exceeded quota.
pub(crate) fn quota_error(failure: ApiError) -> ErrorData {
    to_error_data(&failure)
}

/// The URI of one execution.
pub(super) fn detail_uri(info: &ExecutionInfo) -> String {
    format!("{SCHEME}{}", info.id.short())
}

/// The URI of an execution's output.
pub(crate) fn log_uri(info: &ExecutionInfo) -> String {
    format!("{SCHEME}{}/log", info.id.short())
}

/// The URI of an execution's screen.
pub(super) fn screen_uri(info: &ExecutionInfo) -> String {
    format!("{SCHEME}{}/screen", info.id.short())
}

/// A link to the output of an execution, for an answer that shows only a part of it.
pub(crate) fn log_link(info: &ExecutionInfo) -> ResourceLink {
    let id = info.id.short();
    ResourceLink {
        uri: log_uri(info),
        title: format!("Output of {id}"),
        name: format!("{id}/log"),
        mime_type: TEXT,
    }
}

/// The URI of the output from a position on.
pub(super) fn log_from(info: &ExecutionInfo, cursor: Cursor) -> String {
    format!("{}?cursor={cursor}", log_uri(info))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(uri: &str) -> String {
        match ResourceTarget::parse(uri) {
            Ok(ResourceTarget::List) => "list".to_owned(),
            Ok(ResourceTarget::News) => "news".to_owned(),
            Ok(ResourceTarget::Detail(id)) => format!("detail {id}"),
            Ok(ResourceTarget::Log(id, query)) => format!("log {id} {query:?}"),
            Ok(ResourceTarget::Events(id)) => format!("events {id}"),
            Ok(ResourceTarget::Screen(id)) => format!("screen {id}"),
            Err(UriError(error)) => format!("{} {}", error.code.0, error.message),
        }
    }

    #[test]
    fn every_form_is_known_and_no_other() {
        assert_eq!(named("proc://"), "list");
        assert_eq!(named("proc://news"), "news");
        assert_eq!(named("proc://k3v9x0qa"), "detail k3v9x0qa");
        assert_eq!(named("proc://k3v9x0qa/events"), "events k3v9x0qa");
        assert_eq!(named("proc://k3v9x0qa/screen"), "screen k3v9x0qa");
        assert!(named("proc://k3v9x0qa/log").starts_with("log k3v9x0qa"));
        assert!(named("proc://k/log?tail=5&stream=stderr").contains("Some(5)"));
        for other in [
            "",
            "proc:/",
            "file:///etc/passwd",
            "proc://k/",
            "proc://k/log/",
            "proc://k/log/x",
            "proc://?tail=1",
            "proc://k?tail=1",
            "proc://k/events?x",
            "proc://k/screen?x",
            "proc://k/screen/",
        ] {
            let expected = "-32002 resource not found or access denied";
            assert_eq!(named(other), expected, "{other}");
        }
    }

    #[test]
    fn a_wrong_query_says_what_is_allowed() {
        for (query, expected) in [
            ("tail=0", "tail"),
            ("limit=x", "limit"),
            ("stream=all", "stdout"),
            ("cursor=here", "cursor"),
            ("lines=3", "lines"),
            ("tail=1&tail=2", "twice"),
            ("tail=1&limit=2", "tail"),
        ] {
            let answer = named(&format!("proc://k/log?{query}"));
            assert!(answer.starts_with("-32602"), "{query}: {answer}");
            assert!(answer.contains(expected), "{query}: {answer}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(uri in "proc://\\PC{0,60}|\\PC{0,20}") {
            let _known = ResourceTarget::parse(&uri).is_ok();
        }
    }
}
