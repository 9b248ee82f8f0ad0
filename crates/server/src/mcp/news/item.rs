//! One piece of news in words.

use std::time::Duration;

use ostler_engine::{Info, Match};
use ostler_journal::{Journal, StreamSet};
use ostler_journal::{LineQuery, ReadError, Unfinished};
use ostler_model::ending::WaitStatus;
use ostler_model::{Cause, Ending, ExecutionId, Stage, StreamName, Timestamp};
use serde_json::{Value, json};

use crate::reading;
use crate::render::{clean, rows};
use crate::wire::info::millis_as_seconds;

/// The most characters of one piece of news.
pub(super) const ITEM_CHARS: usize = 240;
/// The most characters of an execution's description or command in it.
const LABEL_CHARS: usize = 40;
/// The most characters of output in it.
const WORDS_CHARS: usize = 120;
/// Bytes of a line that are looked at.
const WORDS_BYTES: u64 = 2 * 1024;
/// Lines from the end among which one with words is looked for.
const WORDS_LINES: u64 = 8;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum What {
    /// It ended.
    Ended,
    /// It ended and is started again.
    Crashed,
    /// It printed what was watched for, or that cannot be told any more.
    Watched,
    /// A service came to this.
    Service(Standing),
}

/// How a living service stands, as far as that is news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) struct Standing {
    /// Which attempt.
    pub(in crate::mcp) attempt: u32,
    /// How far it has come; none before its first sign of life.
    pub(in crate::mcp) stage: Option<Stage>,
    /// Whether it was seen to be ill.
    pub(in crate::mcp) ill: bool,
}

impl Standing {
    /// That of a service that lives; none of everything else.
    pub(in crate::mcp) fn of(info: &Info) -> Option<Self> {
        info.spec.lifetime.plan()?;
        (!info.state.is_finished()).then(|| Self {
            attempt: info.state.attempt,
            stage: info.state.stage,
            ill: info.state.healthy == Some(false),
        })
    }

    /// Whether it is ready, or running with nothing to look at.
    const fn is_there(self) -> bool {
        matches!(self.stage, Some(Stage::Ready | Stage::Running))
    }

    /// Whether this is news to somebody who was told `known` last; on its way is none.
    pub(super) fn is_news_after(self, known: Option<Self>) -> bool {
        match known.filter(|known| known.attempt == self.attempt) {
            Some(known) if self.ill || known.ill => self.ill != known.ill,
            Some(known) => self.is_there() && self.stage > known.stage,
            None => self.ill || self.is_there(),
        }
    }
}

/// Something that happened to one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) struct Item {
    pub(in crate::mcp) at: Timestamp,
    pub(in crate::mcp) id: ExecutionId,
    pub(in crate::mcp) what: What,
    /// Whether it is bad news.
    pub(in crate::mcp) failed: bool,
    /// One clause, without a line break.
    pub(in crate::mcp) text: String,
    /// The same for programs, of a service: `{event, serviceId, …}` in the words of document
    /// 004.
    pub(in crate::mcp) data: Option<Value>,
}

impl Item {
    /// The end of an execution, with the last thing a failed one said; none while it lives.
    pub(super) fn ended(info: &Info, words: Option<String>) -> Option<Self> {
        let ending = info.state.ending.as_ref()?;
        let how = match (&ending.cause, ending.code) {
            (Cause::Exited, Some(code)) => format!("exited {code}"),
            (
                Cause::Exited
                | Cause::Signaled
                | Cause::TimedOut { .. }
                | Cause::Stopped { .. }
                | Cause::OutOfMemory
                | Cause::SpawnFailed { .. }
                | Cause::Lost { .. },
                _,
            ) => ending.describe(),
        };
        let text = format!("{} {how} after {}", name(info), seconds(info.duration()));
        Some(Self {
            at: info.state.ended_at.unwrap_or_else(Timestamp::now),
            id: info.id,
            what: What::Ended,
            failed: !ending.is_success(),
            data: failed(ending)
                .then(|| data(info, "service_failed", Some(&how)))
                .flatten(),
            text: said(text, words),
        })
    }

    /// The end of one attempt of a service that is started again (E9), with the last thing it
    /// said.
    pub(super) fn crashed(
        info: &Info,
        (status, words): (Option<WaitStatus>, Option<String>),
        attempt: u32,
    ) -> Self {
        let how = match status {
            Some(WaitStatus::Code(code)) => format!("exited {code}"),
            Some(WaitStatus::Signal(signal)) => format!("was ended by {signal}"),
            None => "ended".to_owned(),
        };
        let text = format!("{} {how}; attempt {attempt} follows", name(info));
        Self {
            at: Timestamp::now(),
            id: info.id,
            what: What::Crashed,
            failed: true,
            data: data(info, "service_failed", Some(&how)),
            text: said(text, words),
        }
    }

    /// How a living service stands now; none while it is on its way.
    pub(super) fn service(info: &Info) -> Option<Self> {
        let standing = Standing::of(info)?;
        let state = &info.state;
        let seen = state.health.as_deref();
        let (how, event, reason) = if standing.ill {
            let how = if state.ready_evidence.is_some() {
                "is not well"
            } else {
                "failed to become ready"
            };
            (how, "service_failed", seen)
        } else if state.healthy == Some(true) {
            ("is well again", "service_ready", seen)
        } else {
            match state.stage? {
                Stage::Ready => ("is ready", "service_ready", state.url.as_deref()),
                Stage::Running => ("is running", "service_ready", state.url.as_deref()),
                Stage::Listening | Stage::Responding => return None,
            }
        };
        Some(Self {
            at: Timestamp::now(),
            id: info.id,
            what: What::Service(standing),
            failed: standing.ill,
            data: data(info, event, reason.filter(|_| standing.ill)),
            text: said(format!("{} {how}", name(info)), reason.map(clean_line)),
        })
    }

    /// A line that was watched for.
    pub(super) fn printed(info: &Info, found: &Match) -> Self {
        let line = found.line.to_string_lossy();
        let line = clamped(&one_line(&clean(&line)), WORDS_CHARS);
        Self {
            at: found.at,
            id: info.id,
            what: What::Watched,
            failed: false,
            data: None,
            text: clamped(&format!("{} printed \"{line}\"", name(info)), ITEM_CHARS),
        }
    }

    /// A watch that came to nothing.
    pub(super) fn unwatched(info: &Info, why: &str) -> Self {
        let text = format!("{} is watched no more: {why}", name(info));
        Self {
            at: Timestamp::now(),
            id: info.id,
            what: What::Watched,
            failed: true,
            data: None,
            text: clamped(&one_line(&text), ITEM_CHARS),
        }
    }
}

/// Whether it ended badly, and not because somebody wanted it to end.
fn failed(ending: &Ending) -> bool {
    match ending.cause {
        Cause::Stopped { .. } => false,
        Cause::Exited
        | Cause::Signaled
        | Cause::TimedOut { .. }
        | Cause::OutOfMemory
        | Cause::SpawnFailed { .. }
        | Cause::Lost { .. } => !ending.is_success(),
    }
}

/// The last thing an execution said: on standard error where it used that, else anywhere.
pub(super) async fn last_words(journal: &Journal, info: &Info) -> Option<String> {
    let encoding = reading::encoding(info);
    let found = reading::apart(journal, info, move |journal| {
        let lines = last_lines(journal)?;
        Ok(rows(&lines, encoding, Unfinished::Final))
    });
    let rows = found.await.ok()?;
    let words = rows.iter().rev().map(|row| one_line(&row.text));
    let mut words = words.filter(|text| !text.is_empty());
    words.next().map(|text| clamped(&text, WORDS_CHARS))
}

fn last_lines(journal: &Journal) -> Result<Vec<ostler_journal::Line>, ReadError> {
    let errors = journal.stats()?.of(StreamName::Stderr).bytes > 0;
    let page = journal.lines(&LineQuery {
        streams: if errors {
            StreamSet::only(StreamName::Stderr)
        } else {
            StreamSet::OUTPUT
        },
        tail: Some(WORDS_LINES),
        unfinished: Unfinished::Final,
        count_omitted: false,
        max_line_bytes: WORDS_BYTES,
        ..LineQuery::default()
    })?;
    Ok(page.lines)
}

/// A service's event for programs; none of what is no service.
fn data(info: &Info, event: &str, reason: Option<&str>) -> Option<Value> {
    let plan = info.spec.lifetime.plan()?;
    let state = &info.state;
    let mut data = json!({
        "event": event,
        "serviceId": info.id.short(),
        "name": plan.name,
        "status": info.status().service,
    });
    if let Some(pid) = state.pid.filter(|_| !state.is_finished()) {
        data["pid"] = pid.into();
    }
    if let Some(url) = state.url.as_deref().filter(|_| !state.is_finished()) {
        data["url"] = url.into();
    }
    if let Some(reason) = reason {
        data["reason"] = clamped(&clean_line(reason), ITEM_CHARS).into();
    }
    Some(data)
}

fn clean_line(text: &str) -> String {
    one_line(&clean(text))
}

/// The short id, and what it is for people; of a service, what it is called.
fn name(info: &Info) -> String {
    let plan = info.spec.lifetime.plan();
    if let Some(plan) = plan.filter(|plan| !plan.name.is_empty()) {
        return format!("service {} ({})", plan.name, info.id.short());
    }
    let label = if info.spec.description.is_empty() {
        info.spec.command.display()
    } else {
        info.spec.description.clone()
    };
    let label = clamped(&one_line(&label), LABEL_CHARS);
    format!("{} ({label})", info.id.short())
}

fn said(text: String, words: Option<String>) -> String {
    let text = match words {
        Some(words) => format!("{text}: {words}"),
        None => text,
    };
    clamped(&one_line(&text), ITEM_CHARS)
}

fn seconds(duration: Duration) -> String {
    format!("{} s", millis_as_seconds(duration))
}

/// Without line breaks and other control characters, single spaces between words.
fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_control() || letter.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// At most so many characters.
pub(super) fn clamped(text: &str, chars: usize) -> String {
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
        assert_eq!(clamped("äöü", 3), "äöü");
        assert_eq!(clamped("äöüß", 3), "äö…");
        assert_eq!(clamped("", 3), "");
    }
}
