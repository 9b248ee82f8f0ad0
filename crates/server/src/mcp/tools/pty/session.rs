//! Which session is meant, and what can go wrong with one (C12).

use std::future::Future;

use ostler_engine::{Error, Info};
use ostler_model::{ErrorCode, Io, Timestamp};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::Answer;
use crate::params::{Kind, Parameter};

/// The code of document 002, besides ours.
pub(super) const NOT_FOUND: &str = "SESSION_NOT_FOUND";

pub(super) const SESSION: Parameter = Parameter::required("session", Kind::Text, "");

/// The session with this id.
pub(super) fn find(call: Call<'_>, id: &str) -> Result<Info, Failure> {
    if id.is_empty() {
        return Err(Failure::value(
            "the id of a session is empty; allowed: one of pty_start or pty_list",
        ));
    }
    let found = call.engine.info(call.caller, id);
    let info = found.map_err(|error| failure(call, id, error))?;
    match info.spec.io {
        Io::Pty { .. } => Ok(info),
        Io::Pipes { .. } => Err(no_terminal(call, &info)),
    }
}

/// The session with this id, which must live: `what` is what was not done otherwise.
pub(super) fn living(call: Call<'_>, id: &str, what: &str) -> Result<Info, Failure> {
    let info = find(call, id)?;
    match ended(&info) {
        None => Ok(info),
        Some(how) => {
            call.told(&info);
            let id = info.id.short();
            let message = format!("session {id} has ended ({how}); {what}");
            Err(Failure::new(ErrorCode::ProcessControl, message)
                .with_hint("pty_read still shows its screen and output; pty_start opens another"))
        }
    }
}

/// How it ended, in words.
pub(super) fn ended(info: &Info) -> Option<String> {
    info.state.ending.as_ref().map(|ending| ending.describe())
}

/// What the engine said of this session, in the words of these tools.
pub(in crate::mcp::tools) fn failure(call: Call<'_>, id: &str, error: Error) -> Failure {
    match &error {
        Error::NotFound | Error::SessionNotFound => not_found(id),
        Error::NoTerminal { .. } => match call.info(id) {
            Ok(info) => no_terminal(call, &info),
            Err(_) => not_found(id),
        },
        Error::NoShell { .. } => Failure::value(format!(
            "session {id} is no shell with integration, which pty_run needs"
        ))
        .with_hint(
            "type into it with pty_write; a session for pty_run comes from pty_start without \
             command",
        ),
        Error::ShellBusy { .. } => ours(call, id, error).with_hint(
            "pty_read shows it; answer or interrupt it with pty_write (keys [\"ctrl-c\"])",
        ),
        Error::Leased { holder, .. } => leased(call, id, holder),
        Error::Argument(_)
        | Error::Program(_)
        | Error::Refused(_)
        | Error::LevelNotBuilt { .. }
        | Error::Unmet(_)
        | Error::Confinement { .. }
        | Error::Denied { .. }
        | Error::ApprovalRequired { .. }
        | Error::Secret { .. }
        | Error::SecretWithheld { .. }
        | Error::Workspace(_)
        | Error::Service(_)
        | Error::Freeze { .. }
        | Error::Quota(_)
        | Error::NotBorn { .. }
        | Error::Interaction(_)
        | Error::Spawn(_)
        | Error::Control(_)
        | Error::StillRunning { .. }
        | Error::TypedUnknown { .. }
        | Error::Storage { .. }
        | Error::Ledger(_)
        | Error::Output(_)
        | Error::Clear(_)
        | Error::Locked { .. }
        | Error::SessionEnded
        | Error::Closing => ours(call, id, error),
    }
}

/// The engine's message; ids are told in their short form, as everywhere here.
fn ours(call: Call<'_>, id: &str, error: Error) -> Failure {
    let failure = Failure::from(error);
    let Ok(info) = call.info(id) else {
        return failure;
    };
    let message = failure
        .message
        .replace(&info.id.to_string(), &info.id.short());
    Failure { message, ..failure }
}

fn not_found(id: &str) -> Failure {
    let message = format!("session '{id}' not found or access denied ({NOT_FOUND})");
    Failure::new(ErrorCode::SessionNotFound, message).with_hint("pty_list shows the sessions")
}

fn no_terminal(call: Call<'_>, info: &Info) -> Failure {
    let id = info.id.short();
    let message = format!("process {id} has no terminal; allowed: a session of pty_start");
    let hint = match call.front.tools.named("process") {
        Some(_) => "use process and process_control for it; pty_list shows the sessions",
        None => "pty_list shows the sessions",
    };
    Failure::value(message).with_hint(hint)
}

/// Somebody else types: who, and since when.
fn leased(call: Call<'_>, id: &str, name: &str) -> Failure {
    let holder = call.engine.lease_holder(call.caller, id).ok().flatten();
    let since = holder.map_or_else(String::new, |holder| {
        format!(" since {}", to_the_second(holder.since))
    });
    let message = format!("{name} types in session {id}{since}; nothing was typed");
    let look = match call.front.tools.named("pty_read") {
        Some(_) => "pty_read",
        None => "process screen",
    };
    Failure::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "watch with {look} until it is handed back; do not end what a person uses"
    ))
}

/// RFC 3339, in seconds.
pub(super) fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An answer, its failure told in the words of document 002 besides ours.
pub(super) async fn told(answer: impl Future<Output = Answer> + Send) -> Answer {
    match answer.await {
        Err(Interrupted::Failed(failure)) if failure.code == ErrorCode::SessionNotFound => {
            let mut reply = Reply::from(failure);
            reply
                .fields
                .insert("error_code".to_owned(), NOT_FOUND.into());
            Ok(reply)
        }
        answer => answer,
    }
}
