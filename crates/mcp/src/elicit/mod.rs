//! Questions to the person at the client (elicitation), in both protocol eras: before 2026-07-28
//! the server asks while the call waits (`elicitation`); since then the call is answered with the
//! question and a sealed state, and repeated with the answer. Secrets are never requested in a
//! form.

mod elicitation;
mod prompt;

pub(super) use elicitation::{
    DECLINED, DISMISSED, ElicitOutcome, elicit, input_required, resume_elicitation,
};
pub(super) use prompt::{
    PendingPrompt, answer_prompt, ensure_question, lets_command_continue, open_question,
    pending_prompt,
};
