//! What a start, or a wait for readiness, came to: document 004's words (E4, E5), and the same
//! for programs.

use std::time::Duration;

use ostler_engine::{Info, WaitEnd, Waited};
use ostler_journal::LineQuery;
use ostler_model::Stage;
use serde_json::{Value, json};

use super::body::{ServiceBody, name};
use super::launch::Launched;
use crate::mcp::context::Call;
use crate::mcp::output::selected;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::Answer;
use crate::mcp::tools::walls;
use crate::render::service::{self, Told};
use crate::render::{Budget, clamped, clean};

/// Lines shown of one that failed.
const LAST_LINES: u64 = 30;
/// The most characters of them.
const LAST_CHARS: usize = 4_000;
/// The most characters of one line about a service.
const LINE_CHARS: usize = 400;

/// What is told.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Outcome {
    pub(in crate::mcp::tools) launched: Launched,
    /// What else is to be known, a line of its own.
    pub(in crate::mcp::tools) note: Option<String>,
    /// Whether it lived already; none where that was no question.
    pub(in crate::mcp::tools) reused: Option<bool>,
    /// Whether its good end was waited for.
    pub(in crate::mcp::tools) completes: bool,
}

/// Where a service stands after a wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// Ready, or running with nothing to look at.
    Ready,
    /// It ended well, as it must.
    Completed,
    /// On its way.
    Starting,
    /// It will not be ready as it is, or was not in time.
    NotReady(String),
}

/// The answer, in words and for programs.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Answered {
    pub(in crate::mcp::tools) text: String,
    pub(in crate::mcp::tools) fields: Value,
}

impl Outcome {
    /// In words and for programs; what it shows counts as told.
    pub(in crate::mcp::tools) async fn answered(self, call: Call<'_>) -> Answered {
        let info = &self.launched.waited.info;
        call.told(info);
        let standing = standing(&self.launched, self.completes);
        let mut lines = match &standing {
            Standing::Completed => vec![format!("{} completed: exit code 0", name(info))],
            Standing::Ready => ready(call, info).await,
            Standing::Starting => well(info),
            Standing::NotReady(reason) => badly(call, info, reason).await,
        };
        lines.extend(self.note.clone());
        let notes = walls::notes(call, info);
        lines.extend(notes.iter().map(|note| format!("note: {note}")));
        let lines = lines.iter().map(|line| clamped(&clean(line), LINE_CHARS));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if let Standing::NotReady(_) = standing {
            text.push_str(&last_lines(call, info).await);
        }
        if let Some(next) = next(call, info, &standing) {
            text.push('\n');
            text.push_str(&next);
        }
        let fields = self.fields(&standing, &text);
        Answered { text, fields }
    }

    fn fields(&self, standing: &Standing, text: &str) -> Value {
        let mut fields = json!(ServiceBody::from(&self.launched.waited.info));
        fields["event"] = match standing {
            Standing::Ready => "service_ready",
            Standing::Completed => "service_completed",
            Standing::Starting => "service_started",
            Standing::NotReady(_) => "service_failed",
        }
        .into();
        if let Standing::NotReady(reason) = standing {
            fields["reason"] = clean(reason).into();
        }
        if let Some(reused) = self.reused {
            fields["reused"] = reused.into();
        }
        if let Some(note) = &self.note {
            fields["note"] = note.as_str().into();
        }
        fields["message"] = text.into();
        fields
    }
}

impl Answered {
    /// As the answer of a tool that shows states.
    pub(super) fn reply(self) -> Reply {
        Reply {
            blocks: vec![self.text],
            structured: Some(self.fields),
            ..Reply::default()
        }
    }
}

/// A start that could not be carried out, in the document's words.
pub(in crate::mcp::tools) fn failed_to_start(interrupted: Interrupted) -> Answer {
    match interrupted {
        Interrupted::Failed(failure) => {
            let mut text = service::not_started(&failure.message());
            if let Some(hint) = &failure.hint {
                text.push_str(&format!("\nhint: {hint}"));
            }
            Ok(Reply::worded(text, failure))
        }
        Interrupted::Task(_) | Interrupted::Asks(_) => Err(interrupted),
    }
}

fn standing(launched: &Launched, completes: bool) -> Standing {
    let Waited { info, why, .. } = &launched.waited;
    match (why, &info.state.ending) {
        (_, Some(ending)) if completes && ending.is_success() => Standing::Completed,
        (_, None) if completes && launched.timed_out.is_none() => Standing::Starting,
        (WaitEnd::NotReady(seen), _) => Standing::NotReady(seen.clone()),
        (_, Some(_)) => Standing::NotReady(ended(info)),
        (WaitEnd::Ready, None) => Standing::Ready,
        (_, None) if is_there(info) => Standing::Ready,
        (_, None) => match launched.timed_out {
            Some(timeout) => Standing::NotReady(late(info, timeout)),
            None => Standing::Starting,
        },
    }
}

/// Whether it is ready, or running with nothing to look at.
pub(super) fn is_there(info: &Info) -> bool {
    matches!(info.state.stage, Some(Stage::Ready | Stage::Running))
}

fn ended(info: &Info) -> String {
    let how = info.error_message();
    service::ended(how.as_deref())
}

fn late(info: &Info, timeout: Duration) -> String {
    let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let plan = info.spec.lifetime.plan();
    plan.map_or_else(
        || format!("not ready within {ms}ms"),
        |plan| service::too_late(&plan.ready.when, ms),
    )
}

/// What is known of one that is ready or on its way.
fn well(info: &Info) -> Vec<String> {
    let id = info.id.short();
    let told = Told::of(&id, info);
    let mut lines: Vec<String> = service::started(&told).lines().map(str::to_owned).collect();
    if let Some(what) = &told.waits_for {
        lines.push(format!("It waits for {what}."));
    }
    lines
}

/// What is known of one that is ready, and who shares its port.
async fn ready(call: Call<'_>, info: &Info) -> Vec<String> {
    let mut lines = well(info);
    let cwd = Some(info.spec.cwd.as_path());
    if let Ok(why) = call.engine.why(call.caller, &info.id.short(), cwd).await {
        lines.extend(why.shared.iter().map(|it| format!("Warning: {it}")));
    }
    lines
}

/// Why it is not ready, and what can be done about it.
async fn badly(call: Call<'_>, info: &Info, reason: &str) -> Vec<String> {
    let id = info.id.short();
    let told = Told::of(&id, info);
    let mut lines = vec![service::not_ready(reason)];
    if !info.state.is_finished() {
        lines.push(service::still_running(&told));
        lines.extend(service::details(&told));
    }
    let why = call
        .engine
        .why(call.caller, &id, Some(info.spec.cwd.as_path()));
    if let Ok(why) = why.await {
        let waits = told.waits_for.as_deref().unwrap_or("\n");
        let known = reason.contains(&why.because) || why.because.contains(waits);
        if !why.because.is_empty() && !known {
            lines.push(format!("Why: {}", why.because));
        }
        lines.extend(why.hints.iter().map(|hint| format!("hint: {hint}")));
    }
    lines
}

/// The end of its output, under its own heading.
async fn last_lines(call: Call<'_>, info: &Info) -> String {
    let query = LineQuery {
        tail: Some(LAST_LINES),
        ..LineQuery::default()
    };
    let budget = Budget::new(LAST_CHARS, usize::MAX);
    match selected(call, info, query, budget).await {
        Ok(mut printed) => match printed.blocks().join("\n") {
            text if text.is_empty() => "\nIt printed nothing.".to_owned(),
            text => format!("\nLast lines:\n{text}"),
        },
        Err(failure) => format!("\nIts output cannot be read: {}", failure.message()),
    }
}

/// The calls that follow from here, of the tools at hand.
fn next(call: Call<'_>, info: &Info, standing: &Standing) -> Option<String> {
    let (id, name) = (info.id.short(), name(info));
    let offered = |tool| call.front.tools.named(tool).is_some();
    let lives = !info.state.is_finished();
    if offered("service") {
        return Some(match standing {
            Standing::Starting => format!(
                "[go on: service status, name \"{name}\", wait_ms 45000; end it: service stop]"
            ),
            Standing::Completed => return None,
            Standing::Ready | Standing::NotReady(_) if lives => {
                format!("[look: service logs, name \"{name}\"; end it: service stop]")
            }
            Standing::Ready | Standing::NotReady(_) => {
                format!("[more: service logs, name \"{name}\"]")
            }
        });
    }
    let [read, stop] = if offered("command_ps_logs") {
        [
            format!("command_ps_logs with pid {id}"),
            format!("command_ps_stop with pid {id}"),
        ]
    } else if offered("poll_process") {
        [
            format!("poll_process with process_id \"{id}\""),
            format!("kill_process with process_id \"{id}\""),
        ]
    } else {
        return None;
    };
    Some(if lives {
        format!("[look: {read}; end it: {stop}]")
    } else {
        format!("[more: {read}]")
    })
}
