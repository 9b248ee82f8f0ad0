//! Prompts of commands: made into questions, and told to the agent where no person answers.

use ostler_engine::interaction::{CancelReason, Question, State};
use ostler_engine::{Answer, Error, Interaction, Prompt, WaitEnd, Waited};
use ostler_model::ExecutionId;
use tokio::time::Instant;

use super::ask::{Asked, DECLINED, DISMISSED, ask};
use crate::mcp::context::Call;
use crate::mcp::reply::Interrupted;
use crate::render::clamped;
use crate::render::clean;

/// The most characters of a prompt in a question.
const PROMPT_CHARS: usize = 1_000;

/// Has a prompt answered by the person at the client. Whether the wait goes on: the command
/// got its answer.
pub(in crate::mcp) async fn prompted(
    call: Call<'_>,
    (id, prompt): (ExecutionId, &Prompt),
    until: Option<Instant>,
) -> Result<bool, Interrupted> {
    let Ok(interaction) = question(call, id, prompt) else {
        // Too many are open, or it has just ended: the wait's own answer tells.
        return Ok(false);
    };
    Ok(goes_on(&ask(call, &interaction, until).await?))
}

/// Whether what became of a question lets its command go on.
pub(in crate::mcp) fn goes_on(asked: &Asked) -> bool {
    match asked {
        Asked::Closed(Answer::Given(_) | Answer::Default(_)) => true,
        Asked::Closed(Answer::Cancelled(reason)) => match reason {
            CancelReason::AnsweredElsewhere | CancelReason::ExecutionEnded => true,
            CancelReason::Requested { .. }
            | CancelReason::SessionEnded
            | CancelReason::Shutdown => false,
        },
        Asked::Closed(Answer::TimedOut) | Asked::Open => false,
    }
}

/// The open question of an execution; asked now, where there is none.
pub(in crate::mcp) fn question(
    call: Call<'_>,
    id: ExecutionId,
    prompt: &Prompt,
) -> Result<Interaction, Error> {
    if let Some(open) = open_question(call, id) {
        return Ok(open);
    }
    call.engine.ask(
        call.caller,
        Question {
            options: prompt.options.clone(),
            default: prompt.default.clone(),
            execution: Some(id),
            secret: prompt.secret,
            ..Question::new(prompt.kind, text_of(prompt))
        },
    )
}

/// What a prompt is as a question.
fn text_of(prompt: &Prompt) -> String {
    let text = clean(&prompt.text);
    match text.trim() {
        "" => "It waits for input.".to_owned(),
        text => clamped(text, PROMPT_CHARS),
    }
}

/// That a person was asked this last, and would not answer.
fn refusal(call: Call<'_>, id: ExecutionId, message: &str) -> Option<&'static str> {
    let all = call.engine.interactions(call.caller, false).into_iter();
    let theirs = all.filter(|it| it.question.execution == Some(id));
    let last = theirs.max_by_key(|it| it.created_at)?;
    match last.state {
        State::Cancelled {
            reason: CancelReason::Requested { reason, .. },
        } if last.question.message == message => {
            let refusals = [DECLINED, DISMISSED].into_iter();
            refusals
                .into_iter()
                .find(|it| reason.as_deref() == Some(it))
        }
        State::Open | State::Answered { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
            None
        }
    }
}

/// The open question of an execution.
pub(in crate::mcp) fn open_question(call: Call<'_>, id: ExecutionId) -> Option<Interaction> {
    let open = call.engine.interactions(call.caller, true);
    let mut open = open.into_iter();
    open.find(|open| open.question.execution == Some(id))
}

/// A prompt that waits for an answer, for the agent.
#[derive(Debug)]
pub(in crate::mcp) struct Pending {
    /// What is asked, and how it can be answered with the tools at hand; one line each.
    pub(in crate::mcp) text: String,
    /// A person was asked, and declined or dismissed the question.
    pub(in crate::mcp) is_refused: bool,
}

/// What a wait that ended at a prompt means. None for every other end of a wait.
pub(in crate::mcp) fn pending(call: Call<'_>, waited: &Waited) -> Option<Pending> {
    let WaitEnd::Prompt(prompt) = &waited.why else {
        return None;
    };
    let text = clean(&prompt.text);
    let mut told = match text.trim() {
        "" => "it waits for input".to_owned(),
        text => format!("it waits for input: {}", clamped(text, PROMPT_CHARS)),
    };
    if !prompt.options.is_empty() {
        told.push_str("\noptions: ");
        told.push_str(&prompt.options.join(", "));
    }
    if let Some(default) = &prompt.default {
        told.push_str("\ndefault: ");
        told.push_str(default);
    }
    let open = open_question(call, waited.info.id);
    if open.is_none()
        && let Some(refusal) = refusal(call, waited.info.id, text_of(prompt).as_str())
    {
        // Whoever was asked and would not answer is not answered for.
        told.push_str(&format!("\nasked: {refusal}; it still waits"));
        return Some(Pending {
            text: told,
            is_refused: true,
        });
    }
    told.push_str("\nnext: ");
    told.push_str(&next(call, waited, (prompt, open.as_ref())));
    Some(Pending {
        text: told,
        is_refused: false,
    })
}

fn next(
    call: Call<'_>,
    waited: &Waited,
    (prompt, open): (&Prompt, Option<&Interaction>),
) -> String {
    let id = waited.info.id.short();
    let offered = |tool| call.front.tools.named(tool).is_some();
    if prompt.secret {
        let asked = open.map(|open| format!(" (interaction {})", open.id));
        return format!(
            "a secret is asked for; do not make one up: a person can answer it{}, or stop process {id}",
            asked.unwrap_or_default()
        );
    }
    match open {
        Some(open) if offered("interaction_answer") => {
            format!("answer interaction {} with interaction_answer", open.id)
        }
        Some(open) if offered("process_control") => format!(
            "write the answer to process {id} with process_control; interaction {} is open for \
             a person, too",
            open.id
        ),
        None if offered("process_control") => "process_control write".to_owned(),
        Some(open) => format!(
            "a person can answer interaction {}; or stop process {id}",
            open.id
        ),
        None => format!("stop process {id}, or start it again with its input given"),
    }
}
