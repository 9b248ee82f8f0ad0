//! Sending a question to the person at the client, and applying the answer.

use std::time::Duration;

use ostler_engine::{Error, Interaction, InteractionError, InteractionOutcome};
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

use crate::form::{ElicitForm, FormReply};
use crate::reply::{ElicitNeeded, RESULT_KEY, ToolInterrupt};
use crate::tool_call::ToolCall;

/// Why a question is cancelled after its form was declined.
pub(crate) const DECLINED: &str = "the person declined to answer";
/// Why a question is cancelled after its form was closed without an answer.
pub(crate) const DISMISSED: &str = "the person dismissed the question";

/// How often a question is repeated when its answer is invalid.
const TRIES: usize = 3;
/// Timeout for withdrawing a form, in milliseconds.
const WITHDRAW_MS: u64 = 1_000;

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ElicitOutcome {
    /// It is settled: answered here or elsewhere, declined, or expired. The execution has received
    /// the answer.
    Closed(InteractionOutcome),
    /// It is still open: no person could be reached, or none answered in time.
    Open,
}

/// Asks the person at the client, until the deadline at most. Where the MCP revision has the call
/// repeated instead, this returns an interrupt, and [`resume_elicitation`] takes the answer when it
/// comes.
pub(crate) async fn elicit(
    call: ToolCall<'_>,
    interaction: &Interaction,
    deadline: Option<Instant>,
) -> Result<ElicitOutcome, ToolInterrupt> {
    if !interaction.is_open() {
        return Ok(ElicitOutcome::Closed(
            await_answer(call, interaction).await?,
        ));
    }
    if interaction.question.secret || !call.context.supports_forms() {
        return Ok(ElicitOutcome::Open);
    }
    if call.context.is_modern() {
        return Err(ask_again(interaction, None));
    }
    elicit_inline(call, interaction, deadline).await
}

/// Handles the answer in a repeated call; an invalid one opens the form again.
pub(crate) async fn resume_elicitation(
    call: ToolCall<'_>,
) -> Result<Option<ElicitOutcome>, ToolInterrupt> {
    let Some((id, reply)) = call.context.take_reply() else {
        return Ok(None);
    };
    let interaction = call.engine.interaction(call.caller, &id)?;
    let complaint = match apply_reply(call, &interaction, reply).await? {
        ReplyOutcome::Closed(answer) => return Ok(Some(ElicitOutcome::Closed(answer))),
        ReplyOutcome::Open => return Ok(Some(ElicitOutcome::Open)),
        ReplyOutcome::Wrong(complaint) => complaint,
    };
    Err(ask_again(&interaction, Some(complaint)))
}

/// The result that makes the client ask and repeat the call (MCP revision 2026-07-28). The repeated
/// call must have the same `context_digest`.
pub(crate) fn input_required(
    call: ToolCall<'_>,
    needed: &ElicitNeeded,
    context_digest: &[u8],
) -> Result<InputRequiredResult, RequestStateError> {
    let ElicitNeeded {
        interaction,
        complaint,
    } = needed;
    let execution = interaction.question.execution;
    let seals = call.state.state_sealer();
    let state = seals.seal(context_digest, interaction.id.to_string(), execution)?;
    let command = command_text(call, interaction);
    let form = ElicitForm {
        question: &interaction.question,
        command: command.as_deref(),
        complaint: complaint.as_deref(),
    };
    let mut meta = JsonObject::new();
    if let Some(id) = execution {
        // The id is published with this answer.
        let fields = json!({"id": id.short(), "status": "running"});
        meta.insert(RESULT_KEY.to_owned(), fields);
    }
    let input_requests = form.input_requests(interaction.id);
    let required = InputRequiredResult::new(Some(input_requests), Some(state));
    Ok(required.with_meta(MetaObject(meta)))
}

fn ask_again(interaction: &Interaction, complaint: Option<String>) -> ToolInterrupt {
    ToolInterrupt::ElicitNeeded(Box::new(ElicitNeeded {
        interaction: interaction.clone(),
        complaint,
    }))
}

enum ReplyOutcome {
    Closed(InteractionOutcome),
    Open,
    /// The answer is invalid, for this reason.
    Wrong(String),
}

async fn apply_reply(
    call: ToolCall<'_>,
    interaction: &Interaction,
    reply: FormReply,
) -> Result<ReplyOutcome, ToolInterrupt> {
    let id = interaction.id.to_string();
    // A form is filled in by a person, not by the agent that owns the session.
    let writer = call.access.writer(call.caller.clone());
    let person_caller = Caller {
        scope: Scope::Principal,
        ..writer.clone()
    };
    let result = match reply {
        FormReply::Invalid => return Ok(ReplyOutcome::Wrong("it was empty".to_owned())),
        FormReply::Value(value) => {
            call.engine
                .answer_interaction(&person_caller, &id, value)
                .await
        }
        FormReply::Declined => {
            let reason = Some(DECLINED.to_owned());
            call.engine.cancel_interaction(&writer, &id, reason).await
        }
        FormReply::Dismissed => {
            let reason = Some(DISMISSED.to_owned());
            call.engine.cancel_interaction(&writer, &id, reason).await
        }
    };
    match result {
        Ok(_) | Err(Error::Interaction(InteractionError::Closed { .. })) => {
            Ok(ReplyOutcome::Closed(await_answer(call, interaction).await?))
        }
        Err(Error::Interaction(error @ InteractionError::Value { .. })) => {
            Ok(ReplyOutcome::Wrong(error.to_string()))
        }
        Err(Error::Interaction(
            InteractionError::PartiallyWritten { .. }
            | InteractionError::NotDelivered { .. }
            | InteractionError::BeingAnswered { .. }
            | InteractionError::Ended { .. },
        )) => Ok(ReplyOutcome::Open),
        Err(error) => Err(error.into()),
    }
}

async fn await_answer(
    call: ToolCall<'_>,
    interaction: &Interaction,
) -> Result<InteractionOutcome, Error> {
    let id = interaction.id.to_string();
    call.engine.wait_for_answer(call.caller, &id).await
}

/// Asks while the call waits.
async fn elicit_inline(
    call: ToolCall<'_>,
    interaction: &Interaction,
    deadline: Option<Instant>,
) -> Result<ElicitOutcome, ToolInterrupt> {
    let mut complaint = None;
    for _ in 0..TRIES {
        let reply = match show_form(call, interaction, complaint.as_deref(), deadline).await? {
            FormOutcome::Reply(reply) => reply,
            FormOutcome::AnsweredElsewhere(answer) => return Ok(ElicitOutcome::Closed(answer)),
            FormOutcome::NoReply => return Ok(ElicitOutcome::Open),
        };
        match apply_reply(call, interaction, reply).await? {
            ReplyOutcome::Closed(answer) => return Ok(ElicitOutcome::Closed(answer)),
            ReplyOutcome::Open => return Ok(ElicitOutcome::Open),
            ReplyOutcome::Wrong(problem) => complaint = Some(problem),
        }
    }
    Ok(ElicitOutcome::Open)
}

enum FormOutcome {
    Reply(FormReply),
    /// It was settled elsewhere while the form was shown.
    AnsweredElsewhere(InteractionOutcome),
    /// The client has no answer, or the time is over.
    NoReply,
}

/// Shows the form until it is filled in, the question is settled elsewhere, or the time is over.
async fn show_form(
    call: ToolCall<'_>,
    interaction: &Interaction,
    complaint: Option<&str>,
    deadline: Option<Instant>,
) -> Result<FormOutcome, ToolInterrupt> {
    let command = command_text(call, interaction);
    let form = ElicitForm {
        question: &interaction.question,
        command: command.as_deref(),
        complaint,
    };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form.elicit_params()));
    let options = PeerRequestOptions::no_options();
    let sent = call
        .context
        .peer()
        .send_cancellable_request(request, options);
    let Ok(sent) = sent.await else {
        return Ok(FormOutcome::NoReply);
    };
    let mut open_form = OpenForm {
        sent: Some(sent),
        background: call.context.background(),
    };
    tokio::select! {
        biased;
        reply = open_form.reply() => Ok(match reply {
            Some(result) => FormOutcome::Reply(result.into()),
            // The client did not support or refused the form, or is gone: no person saw it.
            None => FormOutcome::NoReply,
        }),
        answer = await_answer(call, interaction) => Ok(FormOutcome::AnsweredElsewhere(answer?)),
        () = sleep_until_deadline(deadline) => Ok(FormOutcome::NoReply),
    }
}

/// A form shown by the client. Dropping it without a reply withdraws it: the question is settled,
/// the call has to answer, or the waiter is gone.
struct OpenForm<'a> {
    sent: Option<RequestHandle<RoleServer>>,
    background: &'a TaskTracker,
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
        self.background.spawn(async move {
            let cancellation = sent.cancel(Some("no answer is needed any more".to_owned()));
            // A client that does not read any more keeps its form.
            let _read = timeout(Duration::from_millis(WITHDRAW_MS), cancellation)
                .await
                .is_ok();
        });
    }
}

/// The command that asks the question.
pub(super) fn command_text(call: ToolCall<'_>, interaction: &Interaction) -> Option<String> {
    let id = interaction.question.execution?;
    let info = call.info(&id.short()).ok()?;
    Some(info.spec.command.display())
}

async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
