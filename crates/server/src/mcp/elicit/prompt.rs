//! Prompts of commands: made into questions, and told to the agent where no person answers.

use ostler_engine::interaction::CancelReason;
use ostler_engine::interaction::Question;
use ostler_engine::{Answer, Error, Interaction, Prompt, WaitEnd, Waited};
use ostler_model::ExecutionId;
use tokio::time::Instant;

use super::ask::{Asked, ask};
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
    let text = clean(&prompt.text);
    let text = match text.trim() {
        "" => "It waits for input.",
        text => text,
    };
    call.engine.ask(
        call.caller,
        Question {
            options: prompt.options.clone(),
            default: prompt.default.clone(),
            execution: Some(id),
            secret: prompt.secret,
            ..Question::new(prompt.kind, clamped(text, PROMPT_CHARS))
        },
    )
}

/// The open question of an execution.
pub(in crate::mcp) fn open_question(call: Call<'_>, id: ExecutionId) -> Option<Interaction> {
    let open = call.engine.interactions(call.caller, true);
    let mut open = open.into_iter();
    open.find(|open| open.question.execution == Some(id))
}

/// What a wait that ended at a prompt means, in words for the agent: what is asked, and how it
/// can be answered with the tools at hand. None for every other end of a wait.
pub(in crate::mcp) fn pending(call: Call<'_>, waited: &Waited) -> Option<String> {
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
    told.push_str("\nnext: ");
    told.push_str(&next(call, waited, (prompt, open.as_ref())));
    Some(told)
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
        None if offered("process_control") => {
            format!("write the answer to process {id} with process_control")
        }
        Some(open) => format!(
            "a person can answer interaction {}; or stop process {id}",
            open.id
        ),
        None => format!("stop process {id}, or start it again with its input given"),
    }
}
