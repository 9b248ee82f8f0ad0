//! Terminals in profile `core`: a command is started in one, typed into, looked at. What an
//! answer shows is found out as for the tools of profile `pty`.

use std::time::Duration;

use ostler_engine::{Info, StartRequest, Typed, Typing, WaitEnd, WaitFor};
use ostler_journal::Pattern;
use ostler_model::{Cursor, ErrorCode, TermSize};

use super::exec::watched;
use super::input::InputArguments;
use super::shown;
use crate::error::Failure;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::tools::pty::{Telling, Until, Wait, session, settle};
use crate::mcp::tools::registry::Answer;
use crate::mcp::waiting::Options;

/// What a terminal measures.
pub(super) const SIZE: TermSize = TermSize { cols: 80, rows: 24 };
/// How long a look at a screen finds out whether the program asks for input.
const LOOK: Duration = Duration::from_millis(250);

/// Starts a command in a terminal; answers what it has printed, or drawn, once it asks for
/// input or is quiet, or once the reason given is so.
pub(super) async fn start(
    call: Call<'_>,
    request: StartRequest,
    (reason, options): (Option<WaitFor>, Options),
    notify: Option<Pattern>,
) -> Answer {
    let begun = consent::begin(call, request).await?;
    let id = begun.id().short();
    // Until the answer is on its way it is nobody's, and ends with the request (F7).
    let info = call.give_out(begun);
    let wait = Wait {
        until: reason.map_or(Until::Settled, Until::Reason),
        at_most: options.at_most.unwrap_or_default(),
    };
    let waited = settle::wait(call, &id, &wait, Some(Cursor::START)).await;
    let outcome = settle::of_start(waited, info)?;
    outcome.waited.info.born()?;
    let failure = shown::failure(&outcome.waited.info);
    let problem = notify.and_then(|pattern| watched(call, &outcome.waited, pattern));
    let waited = outcome.waited.clone();
    let mut reply = match Telling::of(call, outcome).in_core().with_changes(0).await {
        Ok(mut telling) => {
            telling.walls();
            if let Some(problem) = problem {
                telling.note(problem);
            }
            telling.reply(None).await
        }
        Err(failure) => shown::line(call, &waited)
            .with_note(&failure.message())
            .reply(),
    };
    reply.failure = failure;
    Ok(reply)
}

/// Types; how many bytes were taken, and of how many.
pub(super) async fn typed(
    call: Call<'_>,
    id: &str,
    input: &InputArguments,
) -> Result<Typed, Failure> {
    let typing = Typing {
        pieces: input.pieces(),
        lease: None,
    };
    let typed = call.engine.type_in(call.caller, id, typing).await;
    typed.map_err(|error| session::failure(call, id, error))
}

/// Types, and answers what that did.
pub(super) async fn write(
    call: Call<'_>,
    info: &Info,
    input: &InputArguments,
    at_most: Duration,
) -> Answer {
    let id = info.id.short();
    // What came since the last answer is part of this one.
    let unread = call.unread(info).unwrap_or(info.output_end);
    let typed = typed(call, &id, input).await?;
    if typed.taken == 0 && typed.bytes > 0 {
        let message = format!(
            "it took none of {} bytes: it does not read its terminal",
            typed.bytes
        );
        let failure = Failure::new(ErrorCode::ProcessControl, message);
        return Err(failure
            .with_hint("process screen shows it; signal INT interrupts it")
            .into());
    }
    let sent = Cursor {
        offset: typed.input.offset,
        event: 0,
    };
    let wait = Wait {
        until: Until::Settled,
        at_most,
    };
    let outcome = settle::wait(call, &id, &wait, Some(sent)).await?;
    let telling = Telling::of(call, outcome).in_core();
    let mut telling = telling.with_changes(unread).await?;
    if typed.taken < typed.bytes {
        let Typed { bytes, taken, .. } = typed;
        telling.note(format!(
            "it took {taken} of {bytes} bytes; type the rest when it reads"
        ));
    }
    Ok(telling.reply(None).await)
}

/// What is on the terminal of one.
pub(super) async fn screen(call: Call<'_>, ids: &[String]) -> Answer {
    let [id] = ids else {
        return Err(Failure::value("action 'screen' with several 'ids'; allowed: one id").into());
    };
    if call.info(id)?.size().is_none() {
        let failure = Failure::value(format!("process {id} has no terminal"));
        let hint = "action 'output' shows what it printed; exec with input \"tty\" gives one";
        return Err(failure.with_hint(hint).into());
    }
    let found = call
        .engine
        .wait(call.caller, id, &WaitFor::Prompt, Some(LOOK));
    let mut waited = found.await?;
    if waited.why == WaitEnd::AtMost {
        waited.why = WaitEnd::Nothing;
    }
    let telling = Telling::new(call, waited).in_core().with_screen().await?;
    Ok(telling.reply(None).await)
}
