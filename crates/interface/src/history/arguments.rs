//! The conditions of a search as parameters of a request.

use ostler_model::{Caller, Timestamp};
use ostler_store::{HistoryQuery, HistoryStatus};

use crate::error::ApiError;
use crate::params::{Arguments, Parameter, ParameterKind};
use crate::past_time::past_time;

/// The most characters of a searched text.
const TEXT_CHARS_MAX: usize = 4_096;

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
/// When a time is none, or the text is longer than any search.
pub fn history_query(arguments: &mut Arguments, caller: &Caller) -> Result<HistoryQuery, ApiError> {
    let status = arguments.text("status");
    Ok(HistoryQuery {
        label: arguments.text("label"),
        text: searched_text(arguments)?,
        since: time(arguments, "since")?,
        until: time(arguments, "until")?,
        status: status.and_then(|name| HistoryStatus::from_name(&name)),
        ..HistoryQuery::all_of(caller.clone())
    })
}

fn time(arguments: &mut Arguments, name: &'static str) -> Result<Option<Timestamp>, ApiError> {
    let given = arguments.text(name);
    given.map(|given| past_time(name, &given)).transpose()
}

fn searched_text(arguments: &mut Arguments) -> Result<Option<String>, ApiError> {
    let Some(text) = arguments.text("text") else {
        return Ok(None);
    };
    let chars = text.chars().count();
    if chars > TEXT_CHARS_MAX {
        return Err(ApiError::value(format!(
            "parameter 'text' has {chars} characters; allowed: at most {TEXT_CHARS_MAX}"
        )));
    }
    if text.contains('\0') {
        return Err(ApiError::value(
            "parameter 'text' holds a NUL character, which no command line does",
        ));
    }
    Ok(Some(text))
}
