//! Asking, and taking the answer.

use std::time::Duration;

use ostler_engine::{Answer, Error, Interaction, InteractionError};
use ostler_model::{Caller, Scope};
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitResult, InputRequiredResult, JsonObject, MetaObject,
    RequestStateError, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use super::form::{Form, Reply};
use crate::mcp::context::Call;
use crate::mcp::convert::RESULT_KEY;
use crate::mcp::reply::{Asking, Interrupted};

/// Why a question is cancelled whose form was declined.
pub(in crate::mcp) const DECLINED: &str = "the person declined to answer";
/// Why a question is cancelled whose form was closed without an answer.
pub(in crate::mcp) const DISMISSED: &str = "the person dismissed the question";

/// How often a person is asked again whose answer does not fit.
const TRIES: usize = 3;
/// How long withdrawing a form may take, in milliseconds.
const WITHDRAW_MS: u64 = 1_000;

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) enum Asked {
    /// It is settled: answered here or elsewhere, declined, or out of time. For an execution
    /// the answer has gone in.
    Closed(Answer),
    /// Nobody could be asked, or nobody answered in time: it is still open.
    Open,
}

/// Asks the person at the client, at most until then. Where the revision wants the call
/// repeated instead this is interrupted, and [`resume`] takes the answer when it comes.
pub(in crate::mcp) async fn ask(
    call: Call<'_>,
    interaction: &Interaction,
    until: Option<Instant>,
) -> Result<Asked, Interrupted> {
    if !interaction.is_open() {
        return Ok(Asked::Closed(answer(call, interaction).await?));
    }
    if interaction.question.secret || !call.link.shows_forms() {
        return Ok(Asked::Open);
    }
    if call.link.is_modern() {
        return Err(again(interaction, None));
    }
    inline(call, interaction, until).await
}

/// Takes the answer a repeated call brought along. One that does not fit is asked for again.
pub(in crate::mcp) async fn resume(call: Call<'_>) -> Result<Option<Asked>, Interrupted> {
    let Some((id, reply)) = call.link.take_reply() else {
        return Ok(None);
    };
    let interaction = call.engine.interaction(call.caller, &id)?;
    let complaint = match settle(call, &interaction, reply).await? {
        Settled::Closed(answer) => return Ok(Some(Asked::Closed(answer))),
        Settled::Open => return Ok(Some(Asked::Open)),
        Settled::Wrong(complaint) => complaint,
    };
    Err(again(&interaction, Some(complaint)))
}

/// The result that makes the client ask and repeat the call (2026-07-28); `about` is what the
/// repeated call must be about, too.
pub(in crate::mcp) fn required(
    call: Call<'_>,
    asking: &Asking,
    about: &[u8],
) -> Result<InputRequiredResult, RequestStateError> {
    let Asking {
        interaction,
        complaint,
    } = asking;
    let execution = interaction.question.execution;
    let seals = call.desk.seals();
    let state = seals.seal(about, interaction.id.to_string(), execution)?;
    let command = command_of(call, interaction);
    let form = Form {
        question: &interaction.question,
        command: command.as_deref(),
        complaint: complaint.as_deref(),
    };
    let mut meta = JsonObject::new();
    if let Some(id) = execution {
        // It is given out with this answer.
        let fields = json!({"id": id.short(), "status": "running"});
        meta.insert(RESULT_KEY.to_owned(), fields);
    }
    let forms = form.requests(interaction.id);
    let required = InputRequiredResult::new(Some(forms), Some(state));
    Ok(required.with_meta(MetaObject(meta)))
}

fn again(interaction: &Interaction, complaint: Option<String>) -> Interrupted {
    Interrupted::Asks(Box::new(Asking {
        interaction: interaction.clone(),
        complaint,
    }))
}

enum Settled {
    Closed(Answer),
    Open,
    /// The answer does not fit, and why.
    Wrong(String),
}

async fn settle(
    call: Call<'_>,
    interaction: &Interaction,
    reply: Reply,
) -> Result<Settled, Interrupted> {
    let id = interaction.id.to_string();
    // Whoever fills in a form is a person, and not the agent whose session this is.
    let person = Caller {
        scope: Scope::Principal,
        ..call.caller.clone()
    };
    let settled = match reply {
        Reply::Nothing => return Ok(Settled::Wrong("it was empty".to_owned())),
        Reply::Value(value) => call.engine.answer(&person, &id, value).await,
        Reply::Declined => {
            let reason = Some(DECLINED.to_owned());
            call.engine.cancel_interaction(call.caller, &id, reason)
        }
        Reply::Dismissed => {
            let reason = Some(DISMISSED.to_owned());
            call.engine.cancel_interaction(call.caller, &id, reason)
        }
    };
    match settled {
        Ok(_) | Err(Error::Interaction(InteractionError::Closed { .. })) => {
            Ok(Settled::Closed(answer(call, interaction).await?))
        }
        Err(Error::Interaction(error @ InteractionError::Value { .. })) => {
            Ok(Settled::Wrong(error.to_string()))
        }
        Err(Error::Interaction(
            InteractionError::NotTaken { .. }
            | InteractionError::NotDelivered { .. }
            | InteractionError::BeingAnswered { .. }
            | InteractionError::Ended { .. },
        )) => Ok(Settled::Open),
        Err(error) => Err(error.into()),
    }
}

async fn answer(call: Call<'_>, interaction: &Interaction) -> Result<Answer, Error> {
    let id = interaction.id.to_string();
    call.engine.answered(call.caller, &id).await
}

/// Asks while the call waits.
async fn inline(
    call: Call<'_>,
    interaction: &Interaction,
    until: Option<Instant>,
) -> Result<Asked, Interrupted> {
    let mut complaint = None;
    for _ in 0..TRIES {
        let reply = match shown(call, interaction, complaint.as_deref(), until).await? {
            Shown::Reply(reply) => reply,
            Shown::Elsewhere(answer) => return Ok(Asked::Closed(answer)),
            Shown::Nobody => return Ok(Asked::Open),
        };
        match settle(call, interaction, reply).await? {
            Settled::Closed(answer) => return Ok(Asked::Closed(answer)),
            Settled::Open => return Ok(Asked::Open),
            Settled::Wrong(wrong) => complaint = Some(wrong),
        }
    }
    Ok(Asked::Open)
}

enum Shown {
    Reply(Reply),
    /// It was settled while the form was shown.
    Elsewhere(Answer),
    /// The client has no answer, or the time is over.
    Nobody,
}

/// Shows the form until it is filled in, settled elsewhere, or the time is over.
async fn shown(
    call: Call<'_>,
    interaction: &Interaction,
    complaint: Option<&str>,
    until: Option<Instant>,
) -> Result<Shown, Interrupted> {
    let command = command_of(call, interaction);
    let form = Form {
        question: &interaction.question,
        command: command.as_deref(),
        complaint,
    };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form.params()));
    let options = PeerRequestOptions::no_options();
    let sent = call.link.peer().send_cancellable_request(request, options);
    let Ok(sent) = sent.await else {
        return Ok(Shown::Nobody);
    };
    let mut open = OpenForm {
        sent: Some(sent),
        errands: call.link.errands(),
    };
    tokio::select! {
        biased;
        reply = open.reply() => Ok(match reply {
            Some(result) => Shown::Reply(result.into()),
            // Not understood, refused, or gone: nobody was asked.
            None => Shown::Nobody,
        }),
        answer = answer(call, interaction) => Ok(Shown::Elsewhere(answer?)),
        () = reached(until) => Ok(Shown::Nobody),
    }
}

/// A form the client shows. Dropped without a reply, it is withdrawn: the question is settled,
/// or the call has to answer, or nobody waits for it any more.
struct OpenForm<'a> {
    sent: Option<RequestHandle<RoleServer>>,
    errands: &'a TaskTracker,
}

impl OpenForm<'_> {
    async fn reply(&mut self) -> Option<ElicitResult> {
        let sent = self.sent.as_mut()?;
        let reply = (&mut sent.rx).await;
        self.sent = None;
        match reply {
            Ok(Ok(ClientResult::ElicitResult(result))) => Some(result),
            Ok(_) | Err(_) => None,
        }
    }
}

impl Drop for OpenForm<'_> {
    fn drop(&mut self) {
        let Some(sent) = self.sent.take() else { return };
        self.errands.spawn(async move {
            let withdrawn = sent.cancel(Some("no answer is needed any more".to_owned()));
            // A client that does not read any more keeps its form.
            let _read = timeout(Duration::from_millis(WITHDRAW_MS), withdrawn)
                .await
                .is_ok();
        });
    }
}

/// The command whose question it is.
pub(super) fn command_of(call: Call<'_>, interaction: &Interaction) -> Option<String> {
    let id = interaction.question.execution?;
    let info = call.info(&id.short()).ok()?;
    Some(info.spec.command.display())
}

async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
