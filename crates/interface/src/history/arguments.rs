//! The conditions of a search as parameters of a request.

use jiff::tz::TimeZone;
use ostler_model::{Caller, Timestamp};
use ostler_render::{TimeOrCursor, parse_time_or_cursor};
use ostler_store::{HistoryQuery, OutcomeFilter};

use crate::error::ApiError;
use crate::params::{Arguments, Parameter, ParameterKind};

/// `status`.
pub const STATUS: Parameter = Parameter::optional(
    "status",
    ParameterKind::Choice(&[
        "running",
        "succeeded",
        "failed",
        "timed_out",
        "stopped",
        "lost",
    ]),
    "Only those with this status; failed: all that ended in another way than with code 0",
);
/// `text`.
pub const TEXT: Parameter = Parameter::optional(
    "text",
    ParameterKind::Text,
    "Only those with this in their command line",
);
/// `label`.
pub const LABEL: Parameter =
    Parameter::optional("label", ParameterKind::Text, "Only those with this label");
/// `project`.
pub const PROJECT: Parameter =
    Parameter::optional("project", ParameterKind::Text, "Only those of this project");
/// `session`.
pub const SESSION: Parameter =
    Parameter::optional("session", ParameterKind::Text, "Only those of this session");
/// `since`.
pub const SINCE: Parameter = Parameter::optional(
    "since",
    ParameterKind::Text,
    "Only those requested then or later: 10m, 2h, 2024-05-01T12:00:00Z",
);
/// `until`.
pub const UNTIL: Parameter = Parameter::optional(
    "until",
    ParameterKind::Text,
    "Only those requested before then",
);

/// The query of status, text, label, since and until, which the table of the request must have.
///
/// # Errors
/// When a time is none.
pub fn history_query(arguments: &mut Arguments, caller: &Caller) -> Result<HistoryQuery, ApiError> {
    let outcome = arguments.text("status");
    Ok(HistoryQuery {
        label: arguments.text("label"),
        text: arguments.text("text"),
        since: time(arguments, "since")?,
        until: time(arguments, "until")?,
        outcome: outcome.and_then(|name| OutcomeFilter::from_name(&name)),
        ..HistoryQuery::all_of(caller.clone())
    })
}

fn time(arguments: &mut Arguments, name: &'static str) -> Result<Option<Timestamp>, ApiError> {
    let Some(given) = arguments.text(name) else {
        return Ok(None);
    };
    match parse_time_or_cursor(name, &given, Timestamp::now(), &TimeZone::system())? {
        TimeOrCursor::Time(at) => Ok(Some(at)),
        TimeOrCursor::Cursor(_) => Err(ApiError::value(format!(
            "parameter '{name}' is '{given}'; allowed: a time, or how long ago as in 10m"
        ))),
    }
}
