//! The text of one notification.

use ostler_engine::{ExecutionInfo, LineMatch};
use ostler_journal::{Journal, StreamSet};
use ostler_journal::{LineQuery, OpenLineMode, ReadError};
use ostler_model::duration;
use ostler_model::termination::WaitStatus;
use ostler_model::{
    ExecutionId, ServiceStage, StreamName, Termination, TerminationCause, Timestamp,
};
use ostler_render::{clean, to_rows};
use serde_json::{Value, json};

use ostler_interface::output_reader;

/// The most characters of one notification.
pub(super) const ITEM_CHARS: usize = 240;
/// The most characters of an execution's description or command in it.
const LABEL_CHARS: usize = 40;
/// The most characters of output in it.
const LAST_LINE_CHARS: usize = 120;
/// The most bytes read of a line.
const LAST_LINE_BYTES: u64 = 2 * 1024;
/// Lines from the end that are searched for one with text.
const LAST_LINE_LINES: u64 = 8;

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationKind {
    /// The execution ended.
    Ended,
    /// An attempt ended, and the service is started again.
    Crashed,
    /// A watched pattern matched, or the watch cannot continue.
    Watched,
    /// A service reached this state.
    Service(ServiceHealth),
}

/// The reported state of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceHealth {
    /// Number of the attempt.
    pub(crate) attempt: u32,
    /// How far it has come; none before the first sign that it works.
    pub(crate) stage: Option<ServiceStage>,
    /// Whether a health check failed.
    pub(crate) unhealthy: bool,
}

impl ServiceHealth {
    /// The state of a running service; none for anything else.
    pub(crate) fn of(info: &ExecutionInfo) -> Option<Self> {
        info.spec.lifetime.plan()?;
        (!info.state.is_finished()).then(|| Self {
            attempt: info.state.attempt,
            stage: info.state.stage,
            unhealthy: info.state.healthy == Some(false),
        })
    }

    /// Whether it is ready, or running without a readiness check.
    const fn is_up(self) -> bool {
        matches!(
            self.stage,
            Some(ServiceStage::Ready | ServiceStage::Running)
        )
    }

    /// Whether to notify an agent that was last notified of `last`; startup in progress is not
    /// reported.
    pub(super) fn is_change_after(self, last: Option<Self>) -> bool {
        match last.filter(|known| known.attempt == self.attempt) {
            Some(known) if self.unhealthy || known.unhealthy => self.unhealthy != known.unhealthy,
            Some(known) => self.is_up() && self.stage > known.stage,
            None => self.unhealthy || self.is_up(),
        }
    }
}

/// An event of one execution, as reported to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentNotification {
    pub(crate) at: Timestamp,
    pub(crate) id: ExecutionId,
    pub(crate) kind: NotificationKind,
    /// Whether it is a failure.
    pub(crate) failed: bool,
    /// One clause, without a line break.
    pub(crate) text: String,
    /// The same as JSON, for a service: `{event, serviceId, …}` with the field names of the
    /// `service` tool.
    pub(crate) data: Option<Value>,
}

impl AgentNotification {
    /// The end of an execution, with the last line a failed one printed; none while it runs.
    pub(super) fn ended(info: &ExecutionInfo, last_line: Option<String>) -> Option<Self> {
        let ending = info.state.ending.as_ref()?;
        let ending_text = match (&ending.cause, ending.code) {
            (TerminationCause::Exited, Some(code)) => format!("exited {code}"),
            (
                TerminationCause::Exited
                | TerminationCause::Signaled
                | TerminationCause::TimedOut { .. }
                | TerminationCause::Stopped { .. }
                | TerminationCause::OutOfMemory
                | TerminationCause::SpawnFailed { .. }
                | TerminationCause::Lost { .. },
                _,
            ) => ending.describe(),
        };
        let text = format!(
            "{} {ending_text} after {}",
            label(info),
            duration::seconds(info.duration())
        );
        Some(Self {
            at: info.state.ended_at.unwrap_or_else(Timestamp::now),
            id: info.id,
            kind: NotificationKind::Ended,
            failed: !ending.is_success(),
            data: is_failure(ending)
                .then(|| service_event(info, "service_failed", Some(&ending_text)))
                .flatten(),
            text: with_last_line(text, last_line),
        })
    }

    /// The end of one attempt of a service that is started again, with the last line it printed.
    pub(super) fn crashed(
        info: &ExecutionInfo,
        status: Option<WaitStatus>,
        last_line: Option<String>,
        attempt: u32,
    ) -> Self {
        let ending_text = match status {
            Some(WaitStatus::Code(code)) => format!("exited {code}"),
            Some(WaitStatus::Signal(signal)) => format!("was ended by {signal}"),
            None => "ended".to_owned(),
        };
        let text = format!("{} {ending_text}; attempt {attempt} follows", label(info));
        Self {
            at: Timestamp::now(),
            id: info.id,
            kind: NotificationKind::Crashed,
            failed: true,
            data: service_event(info, "service_failed", Some(&ending_text)),
            text: with_last_line(text, last_line),
        }
    }

    /// The present state of a running service; none while it starts.
    pub(super) fn service(info: &ExecutionInfo) -> Option<Self> {
        let health = ServiceHealth::of(info)?;
        let state = &info.state;
        let detail = state.health.as_deref();
        let (status_text, event, reason) = if health.unhealthy {
            let status_text = if state.ready_evidence.is_some() {
                "is not well"
            } else {
                "failed to become ready"
            };
            (status_text, "service_failed", detail)
        } else if state.healthy == Some(true) {
            ("is well again", "service_ready", detail)
        } else {
            match state.stage? {
                ServiceStage::Ready => ("is ready", "service_ready", state.url.as_deref()),
                ServiceStage::Running => ("is running", "service_ready", state.url.as_deref()),
                ServiceStage::Listening | ServiceStage::Responding => return None,
            }
        };
        Some(Self {
            at: Timestamp::now(),
            id: info.id,
            kind: NotificationKind::Service(health),
            failed: health.unhealthy,
            data: service_event(info, event, reason.filter(|_| health.unhealthy)),
            text: with_last_line(
                format!("{} {status_text}", label(info)),
                reason.map(clean_line),
            ),
        })
    }

    /// A line that matched a watched pattern.
    pub(super) fn pattern_matched(info: &ExecutionInfo, matched: &LineMatch) -> Self {
        let line = matched.line.to_string_lossy();
        let line = truncate(&one_line(&clean(&line)), LAST_LINE_CHARS);
        Self {
            at: matched.at,
            id: info.id,
            kind: NotificationKind::Watched,
            failed: false,
            data: None,
            text: truncate(&format!("{} printed \"{line}\"", label(info)), ITEM_CHARS),
        }
    }

    /// A watch that ended without a match.
    pub(super) fn watch_failed(info: &ExecutionInfo, reason: &str) -> Self {
        let text = format!("{} is watched no more: {reason}", label(info));
        Self {
            at: Timestamp::now(),
            id: info.id,
            kind: NotificationKind::Watched,
            failed: true,
            data: None,
            text: truncate(&one_line(&text), ITEM_CHARS),
        }
    }
}

/// Whether it failed rather than being stopped on request.
fn is_failure(ending: &Termination) -> bool {
    match ending.cause {
        TerminationCause::Stopped { .. } => false,
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::TimedOut { .. }
        | TerminationCause::OutOfMemory
        | TerminationCause::SpawnFailed { .. }
        | TerminationCause::Lost { .. } => !ending.is_success(),
    }
}

/// The last line an execution printed: on standard error if it used that, else on any stream.
pub(super) async fn last_printed_line(journal: &Journal, info: &ExecutionInfo) -> Option<String> {
    let encoding = output_reader::encoding(info);
    let read_rows = output_reader::run_read(journal, info, move |journal| {
        let lines = last_lines(journal)?;
        Ok(to_rows(&lines, encoding, OpenLineMode::Final))
    });
    let rows = read_rows.await.ok()?;
    let texts = rows.iter().rev().map(|row| one_line(&row.text));
    let mut texts = texts.filter(|text| !text.is_empty());
    texts.next().map(|text| truncate(&text, LAST_LINE_CHARS))
}

fn last_lines(journal: &Journal) -> Result<Vec<ostler_journal::JournalLine>, ReadError> {
    let errors = journal.stats()?.for_stream(StreamName::Stderr).bytes > 0;
    let page = journal.lines(&LineQuery {
        streams: if errors {
            StreamSet::only(StreamName::Stderr)
        } else {
            StreamSet::OUTPUT
        },
        tail: Some(LAST_LINE_LINES),
        unfinished: OpenLineMode::Final,
        count_omitted: false,
        max_line_bytes: LAST_LINE_BYTES,
        ..LineQuery::default()
    })?;
    Ok(page.lines)
}

/// A service's event as JSON; none for other executions.
fn service_event(info: &ExecutionInfo, event: &str, reason: Option<&str>) -> Option<Value> {
    let plan = info.spec.lifetime.plan()?;
    let state = &info.state;
    let mut data = json!({
        "event": event,
        "serviceId": info.id.short(),
        "name": plan.name,
        "status": info.status().service,
    });
    if let Some(pid) = state.shown_pid().filter(|_| !state.is_finished()) {
        data["pid"] = pid.into();
    }
    if let Some(url) = state.url.as_deref().filter(|_| !state.is_finished()) {
        data["url"] = url.into();
    }
    if let Some(reason) = reason {
        data["reason"] = truncate(&clean_line(reason), ITEM_CHARS).into();
    }
    Some(data)
}

fn clean_line(text: &str) -> String {
    one_line(&clean(text))
}

/// The short id with the description or command; for a service, its name.
fn label(info: &ExecutionInfo) -> String {
    let plan = info.spec.lifetime.plan();
    if let Some(plan) = plan.filter(|plan| !plan.name.is_empty()) {
        return format!("service {} ({})", plan.name, info.id.short());
    }
    let label = if info.spec.description.is_empty() {
        info.spec.command.display()
    } else {
        info.spec.description.clone()
    };
    let label = truncate(&one_line(&label), LABEL_CHARS);
    format!("{} ({label})", info.id.short())
}

fn with_last_line(text: String, last_line: Option<String>) -> String {
    let text = match last_line {
        Some(words) => format!("{text}: {words}"),
        None => text,
    };
    truncate(&one_line(&text), ITEM_CHARS)
}

/// The text without line breaks and other control characters, with single spaces between words.
fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_control() || letter.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The text, truncated to `chars` characters.
pub(super) fn truncate(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => {
            let kept = text[..end].char_indices().next_back();
            format!("{}…", &text[..kept.map_or(0, |(at, _)| at)])
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_line_and_no_longer_than_allowed() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}c  d "), "a b c d");
        assert_eq!(truncate("äöü", 3), "äöü");
        assert_eq!(truncate("äöüß", 3), "äö…");
        assert_eq!(truncate("", 3), "");
    }
}
