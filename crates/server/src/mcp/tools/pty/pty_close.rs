//! `pty_close`: end sessions (C6), and forget them (C8).

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, Info, StopRequest, WaitFor};
use ostler_model::signal::SignalError;
use ostler_model::{ErrorCode, Signal};
use serde_json::{Value, json};

use super::session;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

/// The most sessions one call takes.
const SESSIONS_LIMIT: usize = 100;
/// How long is waited for the end after a signal that may or may not bring it.
const SIGNALLED: Duration = Duration::from_secs(2);

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_close",
    title: "Close terminals",
    about: "End sessions with all they started; a result per id. TERM hangs up, and kills after \
            5 s; KILL at once; another signal is only sent.",
    parameters: &[
        Parameter::required("sessions", Kind::Ids, ""),
        Parameter::optional("signal", Kind::Text, "").or_text("TERM"),
        Parameter::optional("reason", Kind::Text, ""),
        Parameter::optional("forget", Kind::Flag, "Delete ended ones, output too"),
    ],
    hints: Hints::ENDS,
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

/// What is to be done to each session.
#[derive(Debug)]
struct Deed {
    signal: Signal,
    reason: Option<String>,
    forget: bool,
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let ids = ids(&mut arguments)?;
    let signal: Result<Signal, SignalError> = arguments.required_text("signal").parse();
    let wrong = |error| Failure::value(format!("parameter 'signal': {error}"));
    let deed = Deed {
        signal: signal.map_err(wrong)?,
        reason: arguments.text("reason"),
        forget: arguments.flag("forget"),
    };
    let results = join_all(ids.iter().map(|id| close(call, id, &deed))).await;
    Ok(told(&ids, results)?)
}

/// The ids, each once, in the order given.
fn ids(arguments: &mut Arguments) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for id in arguments.ids("sessions") {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.len() {
        0 => Err(Failure::value(
            "parameter 'sessions' is empty; allowed: ids of pty_start or pty_list",
        )),
        1..=SESSIONS_LIMIT => Ok(ids),
        count => Err(Failure::value(format!(
            "parameter 'sessions' has {count} entries; allowed: at most {SESSIONS_LIMIT}"
        ))),
    }
}

/// Ends one session; the result's own fields.
async fn close(call: Call<'_>, id: &str, deed: &Deed) -> Result<Value, Failure> {
    let known = session::find(call, id)?;
    let had_ended = known.state.is_finished();
    let info = if had_ended {
        known
    } else {
        end(call, id, deed).await?
    };
    call.told(&info);
    let mut told = json!({
        "result": how(&info, had_ended, deed.signal),
        "status": info.status().session,
    });
    if let Some(ending) = &info.state.ending {
        told["exit_code"] = json!(ending.code);
        told["signal"] = json!(ending.signal.map(|signal| signal.name()));
    }
    if !info.survivors.is_empty() {
        told["survivors"] = json!(info.survivors);
    }
    if deed.forget {
        told["forgotten"] = json!(forget(call, &info).await?);
    }
    Ok(told)
}

async fn end(call: Call<'_>, id: &str, deed: &Deed) -> Result<Info, Failure> {
    let (engine, caller) = (call.engine, call.caller);
    let in_our_words = |error| session::failure(call, id, error);
    if deed.signal == Signal::TERM || deed.signal == Signal::KILL {
        let request = StopRequest {
            force: deed.signal == Signal::KILL,
            grace: None,
            reason: deed.reason.clone(),
        };
        return engine.stop(caller, id, request).await.map_err(in_our_words);
    }
    let sent = engine.signal(caller, id, deed.signal).await;
    sent.map_err(in_our_words)?;
    let waited = engine
        .wait(caller, id, &WaitFor::Exit, Some(SIGNALLED))
        .await;
    Ok(waited.map_err(in_our_words)?.info)
}

fn how(info: &Info, had_ended: bool, signal: Signal) -> String {
    match (session::ended(info), had_ended) {
        (Some(how), false) => how,
        (Some(how), true) => format!("it had ended before: {how}"),
        (None, _) => format!("{signal} sent; it still runs"),
    }
}

/// Whether it is gone.
async fn forget(call: Call<'_>, info: &Info) -> Result<bool, Failure> {
    if !info.state.is_finished() {
        return Ok(false);
    }
    let id = info.id.short();
    let outcomes = call.engine.clean(call.caller, &[id]).await?;
    match outcomes.into_iter().next() {
        Some((_, CleanOutcome::Cleaned | CleanOutcome::Discarded | CleanOutcome::NotFound))
        | None => Ok(true),
        Some((_, CleanOutcome::Running)) => Ok(false),
        Some((_, CleanOutcome::Failed(reason))) => {
            Err(Failure::new(ErrorCode::ProcessClean, reason))
        }
    }
}

/// A result per id; an error only when nothing could be done at all.
fn told(ids: &[String], results: Vec<Result<Value, Failure>>) -> Result<Reply, Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut lines = Vec::with_capacity(ids.len());
    for (id, result) in ids.iter().zip(results) {
        let mut line = result.unwrap_or_else(|failure| {
            let mut told = json!({
                "result": format!("failed: {}", failure.message()),
                "error": failure.code,
            });
            if failure.code == ErrorCode::SessionNotFound {
                told["error_code"] = session::NOT_FOUND.into();
            }
            failures.push(failure);
            told
        });
        line["session"] = json!(id);
        lines.push(line);
    }
    if failures.len() < ids.len() {
        return Ok(Reply::status(&json!({"results": lines})));
    }
    let messages: Vec<String> = failures.iter().map(|it| it.message.clone()).collect();
    let message = messages.join("; ");
    let first = failures.into_iter().next();
    let first = first.unwrap_or_else(|| Failure::value("no session was named"));
    Err(Failure { message, ..first })
}
