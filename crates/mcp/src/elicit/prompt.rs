//! Prompts of commands: turned into questions, and reported to the agent when no person answers.

use ostler_engine::interaction::{CancelReason, InteractionState, Question};
use ostler_engine::{Error, Interaction, InteractionOutcome, Prompt, WaitEnd, WaitOutcome};
use ostler_model::{ExecutionId, QuestionSource};
use ostler_render::clean;
use ostler_render::truncated;
use tokio::time::Instant;

use super::elicitation::{DECLINED, DISMISSED, ElicitOutcome, elicit};
use crate::reply::ToolInterrupt;
use crate::tool_call::ToolCall;

/// The most characters of a prompt in a question.
const PROMPT_CHARS: usize = 1_000;

/// Has a prompt answered by the person at the client. Returns whether to keep waiting: the command
/// got its answer.
pub(crate) async fn answer_prompt(
    call: ToolCall<'_>,
    id: ExecutionId,
    prompt: &Prompt,
    deadline: Option<Instant>,
) -> Result<bool, ToolInterrupt> {
    let Ok(interaction) = ensure_question(call, id, prompt) else {
        // Too many are open, or the command has just ended: the result of the wait contains which.
        return Ok(false);
    };
    Ok(lets_command_continue(
        &elicit(call, &interaction, deadline).await?,
    ))
}

/// Whether a question's outcome lets its command continue.
pub(crate) fn lets_command_continue(outcome: &ElicitOutcome) -> bool {
    match outcome {
        ElicitOutcome::Closed(InteractionOutcome::Answered(_) | InteractionOutcome::Default(_)) => {
            true
        }
        ElicitOutcome::Closed(InteractionOutcome::Cancelled(reason)) => match reason {
            CancelReason::AnsweredElsewhere
            | CancelReason::ExecutionEnded
            | CancelReason::PromptGone => true,
            CancelReason::Requested { .. }
            | CancelReason::SessionEnded
            | CancelReason::Shutdown
            | CancelReason::EngineKilled => false,
        },
        ElicitOutcome::Closed(InteractionOutcome::TimedOut) | ElicitOutcome::Open => false,
    }
}

/// The open question of an execution, created if there is none.
pub(crate) fn ensure_question(
    call: ToolCall<'_>,
    id: ExecutionId,
    prompt: &Prompt,
) -> Result<Interaction, Error> {
    if let Some(open) = open_question(call, id) {
        return Ok(open);
    }
    let question = Question::from_prompt(prompt, id);
    call.engine.open_interaction(call.caller, question)
}

/// Why the person refused this question the last time, if so.
fn last_refusal(call: ToolCall<'_>, id: ExecutionId, prompt: &Prompt) -> Option<&'static str> {
    let message = Question::from_prompt(prompt, id).message;
    let all = call.engine.interactions(call.caller, false).into_iter();
    let of_execution = all.filter(|it| it.question.execution == Some(id));
    let last = of_execution.max_by_key(|it| it.created_at)?;
    match last.state {
        InteractionState::Cancelled {
            reason: CancelReason::Requested { reason, .. },
        } if last.question.message == message => {
            let refusals = [DECLINED, DISMISSED].into_iter();
            refusals
                .into_iter()
                .find(|it| reason.as_deref() == Some(it))
        }
        InteractionState::Open
        | InteractionState::Answered { .. }
        | InteractionState::Cancelled { .. }
        | InteractionState::TimedOut { .. } => None,
    }
}

/// The open question of an execution.
pub(crate) fn open_question(call: ToolCall<'_>, id: ExecutionId) -> Option<Interaction> {
    let open_interactions = call.engine.interactions(call.caller, true);
    let mut open_interactions = open_interactions.into_iter();
    open_interactions.find(|open| {
        // A client's question may not say that the prompt is for a secret.
        open.question.execution == Some(id) && open.question.source == QuestionSource::Command
    })
}

/// A prompt that waits for an answer, as reported to the agent.
#[derive(Debug)]
pub(crate) struct PendingPrompt {
    /// The question, and how to answer it with the available tools; one line each.
    pub(crate) text: String,
    /// Whether a person declined or dismissed the question.
    pub(crate) is_refused: bool,
}

/// The prompt at which a wait ended; none for every other end.
pub(crate) fn pending_prompt(call: ToolCall<'_>, waited: &WaitOutcome) -> Option<PendingPrompt> {
    let WaitEnd::Prompt(prompt) = &waited.end else {
        return None;
    };
    let text = clean(&prompt.text);
    let mut text_lines = match text.trim() {
        "" => "it waits for input".to_owned(),
        text => format!("it waits for input: {}", truncated(text, PROMPT_CHARS)),
    };
    if !prompt.options.is_empty() {
        text_lines.push_str("\noptions: ");
        text_lines.push_str(&prompt.options.join(", "));
    }
    if let Some(default) = &prompt.default {
        text_lines.push_str("\ndefault: ");
        text_lines.push_str(default);
    }
    let open = open_question(call, waited.info.id);
    if open.is_none()
        && let Some(refusal) = last_refusal(call, waited.info.id, prompt)
    {
        // Suggest no answer where the person refused to give one.
        text_lines.push_str(&format!("\nasked: {refusal}; it still waits"));
        return Some(PendingPrompt {
            text: text_lines,
            is_refused: true,
        });
    }
    text_lines.push_str("\nnext: ");
    text_lines.push_str(&next_step(call, waited, prompt, open.as_ref()));
    Some(PendingPrompt {
        text: text_lines,
        is_refused: false,
    })
}

fn next_step(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
    prompt: &Prompt,
    open_interaction: Option<&Interaction>,
) -> String {
    let id = waited.info.id.short();
    let offered = |tool| call.client_context.tools.offers(tool);
    if prompt.secret {
        let interaction_note = open_interaction.map(|open| format!(" (interaction {})", open.id));
        return format!(
            "a secret is asked for; do not make one up: a person can answer it{}, or stop process {id}",
            interaction_note.unwrap_or_default()
        );
    }
    match open_interaction {
        Some(open) if offered("interaction_answer") => {
            format!("answer interaction {} with interaction_answer", open.id)
        }
        Some(open) if offered("process_control") => format!(
            "process_control write; a person can answer interaction {}, too",
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
