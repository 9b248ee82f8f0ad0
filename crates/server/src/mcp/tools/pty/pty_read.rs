//! `pty_read`: the screen, plain text, or raw output, now or once something happened.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_engine::{TerminalPage, TerminalQuery, WaitEnd, WaitFor, Waited};
use ostler_model::Cursor;
use serde_json::{Value, json};

use super::pty_run::OFFSET_LIMIT;
use super::session::{self, SESSION};
use super::settle::{self, PATTERN, UNTIL, WAIT_MS, Wait};
use super::told::Telling;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::REPLY_CHARS;

/// How long a call waits for a session to settle, unless it says otherwise.
const SETTLED: Duration = Duration::from_secs(10);
/// How long a call that waits for nothing looks whether the program asks for input: a little
/// longer than the silence that takes.
const LOOK: Duration = Duration::from_millis(250);
/// The most bytes of one raw page.
const RAW_BYTES: i64 = 18_000;
/// What a raw page may have as JSON, in characters.
const RAW_CHARS: usize = REPLY_CHARS - 500;

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_read",
    title: "Look at a terminal",
    about: "Look at a session: its screen (default), its output as text (redraws folded), or raw \
            with control sequences: {data, next_offset, start_offset, truncated}. With until, \
            pattern or wait_ms it waits first, as pty_write does; \"prompt\" in a shell means \
            its command has ended.",
    parameters: &[
        SESSION,
        Parameter::optional("view", Kind::Choice(&["screen", "text", "raw"]), ""),
        Parameter::optional(
            "offset",
            Kind::Integer(0, OFFSET_LIMIT),
            "Of text, raw, until: only what comes after it (B of \"output A to B\"); default of \
             text, until: what you were not shown yet",
        ),
        Parameter::optional(
            "limit",
            Kind::Integer(1, OFFSET_LIMIT),
            "Bytes of text, raw",
        ),
        UNTIL,
        PATTERN,
        WAIT_MS,
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("session");
    let info = session::find(call, &id)?;
    let view = arguments.text("view");
    let view = view.as_deref().unwrap_or("screen");
    let (offset, limit) = (arguments.count("offset"), arguments.count("limit"));
    if view == "screen" && limit.is_some() {
        return Err(Failure::value(
            "parameter 'limit' does not go with view 'screen'; allowed: view 'text' or 'raw'",
        )
        .into());
    }
    let unread = offset.or_else(|| call.unread(&info));
    let from = unread.map(|offset| Cursor { offset, event: 0 });
    let now = info.cursor();
    let wait = Wait::read(&mut arguments, from, SETTLED)?;
    let outcome = match wait.map(|wait| beginning(wait, from, now)) {
        Some(wait) => settle::wait(call, &id, &wait, None).await?,
        None => look(call, &id).await?.into(),
    };
    match view {
        "raw" => raw(call, &id, (offset, limit)).await,
        "text" => {
            let telling = Telling::of(call, outcome);
            let telling = telling.with_text(unread.unwrap_or(0), limit).await?;
            Ok(telling.reply(None).await)
        }
        _ => {
            let telling = Telling::of(call, outcome).with_screen().await?;
            Ok(telling.reply(None).await)
        }
    }
}

/// A client that was shown nothing yet waits for output from now on.
fn beginning(wait: Wait, from: Option<Cursor>, now: Cursor) -> Wait {
    match (&wait.until, from) {
        (settle::Until::Reason(WaitFor::OutputAfter(_)), None) => Wait {
            until: settle::Until::Reason(WaitFor::OutputAfter(now)),
            ..wait
        },
        _ => wait,
    }
}

/// As it is now; what it asks for is found out, where it asks.
async fn look(call: Call<'_>, id: &str) -> Result<Waited, Interrupted> {
    let found = call
        .engine
        .wait(call.caller, id, &WaitFor::Prompt, Some(LOOK));
    let mut waited = found
        .await
        .map_err(|error| session::failure(call, id, error))?;
    if waited.why == WaitEnd::AtMost {
        waited.why = WaitEnd::Nothing;
    }
    Ok(waited)
}

/// Output as the terminal got it (C3).
async fn raw(call: Call<'_>, id: &str, (offset, limit): (Option<u64>, Option<u64>)) -> Answer {
    let most = RAW_BYTES.unsigned_abs();
    let mut limit = limit.map_or(most, |limit| limit.min(most));
    loop {
        let query = TerminalQuery {
            offset,
            limit: Some(limit),
        };
        let page = call.engine.read_terminal(call.caller, id, query).await;
        let page = page.map_err(|error| session::failure(call, id, error))?;
        let body = told(id, &page);
        let chars = body.to_string().chars().count();
        // Control characters take six characters each as JSON.
        if chars <= RAW_CHARS || limit <= 1 {
            let info = session::find(call, id)?;
            call.told(&info);
            return Ok(Reply::status(&body));
        }
        limit = (limit * RAW_CHARS as u64 / chars as u64).clamp(1, limit - 1);
    }
}

fn told(id: &str, page: &TerminalPage) -> Value {
    let data = match std::str::from_utf8(&page.data) {
        Ok(text) => json!(text),
        Err(_) => json!({"base64": STANDARD.encode(&page.data)}),
    };
    json!({
        "session": id,
        "data": data,
        "offset": page.offset,
        "next_offset": page.next_offset,
        "start_offset": page.start_offset,
        "end_offset": page.end_offset,
        "truncated": page.truncated,
    })
}
