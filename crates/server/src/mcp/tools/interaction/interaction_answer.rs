//! `interaction_answer`: answer a question, or give it up.

use ostler_engine::Interaction;
use ostler_model::ErrorCode;
use serde_json::json;

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

pub(super) const DEFINITION: Definition = Definition {
    name: "interaction_answer",
    title: "Answer a question",
    about: "Answer a question of interaction_list; the process that asks gets it as a line of \
            input. confirmation: yes or no; choice_selection: one of the options, or its number; \
            file_selection: a path that exists. An empty answer takes the default. Or cancel it. \
            Secrets are not taken here.",
    parameters: &[
        Parameter::required("id", Kind::Text, "Interaction id"),
        Parameter::optional("answer", Kind::Text, "The answer"),
        Parameter::optional("cancel", Kind::Flag, "Give it up instead").or_flag(false),
        Parameter::optional("reason", Kind::Text, "Why it is cancelled, for the record"),
    ],
    hints: Hints {
        read_only: false,
        destructive: true,
        idempotent: false,
    },
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("id");
    let decided = match (arguments.text("answer"), arguments.flag("cancel")) {
        (Some(answer), false) => given(call, &id, answer).await?,
        (None, true) => {
            let reason = arguments.text("reason");
            call.engine.cancel_interaction(call.caller, &id, reason)?
        }
        (Some(_), true) => return Err(either("both parameters 'answer' and 'cancel' are given")),
        (None, false) => return Err(either("neither 'answer' nor 'cancel' is given")),
    };
    Ok(Reply::status(&json!({
        "id": decided.id,
        "status": decided.state.as_str(),
        "kind": decided.question.kind,
        "execution": decided.question.execution.map(|id| id.short()),
    })))
}

fn either(problem: &str) -> Interrupted {
    Failure::value(format!("{problem}; allowed: one of them")).into()
}

async fn given(call: Call<'_>, id: &str, answer: String) -> Result<Interaction, Failure> {
    let interaction = call.engine.interaction(call.caller, id)?;
    if interaction.question.secret && interaction.is_open() {
        return Err(secret(call, &interaction));
    }
    Ok(call.engine.answer(call.caller, id, answer).await?)
}

/// Where an answer goes that must not go through here.
fn secret(call: Call<'_>, interaction: &Interaction) -> Failure {
    let id = interaction.id;
    let person = "let a person answer it, at the command line or in the web interface";
    let hint = match interaction.question.execution {
        Some(process) if call.front.tools.named("process_control").is_some() => format!(
            "{person}; or write to process {} with process_control; never make a secret up",
            process.short()
        ),
        Some(_) | None => format!("{person}; never make a secret up"),
    };
    let message = format!("interaction {id} asks for a secret, which is not taken here");
    Failure::new(ErrorCode::Interaction, message).with_hint(hint)
}
