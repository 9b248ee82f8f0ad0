//! `interaction_answer`: answer or cancel a question.

use ostler_engine::Interaction;
use ostler_model::ErrorCode;
use serde_json::json;

use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "interaction_answer",
    title: "Answer a question",
    about: "Answer a question of interaction_list; the process that asks gets it as a line of \
            input. confirmation: yes or no; choice_selection: one of the options, or its number; \
            file_selection: a path that exists. An empty answer takes the default. Or cancel it. \
            Secrets are not taken here.",
    parameters: &[
        Parameter::required("id", ParameterKind::Text, "Interaction id"),
        Parameter::optional("answer", ParameterKind::Text, "The answer"),
        Parameter::optional("cancel", ParameterKind::Flag, "Give it up instead")
            .with_default_flag(false),
        Parameter::optional(
            "reason",
            ParameterKind::Text,
            "Why it is cancelled, for the record",
        ),
    ],
    hints: ToolHints {
        read_only: false,
        destructive: true,
        idempotent: false,
    },
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("id");
    let interaction = match (arguments.text("answer"), arguments.flag("cancel")) {
        (Some(answer), false) => submit_answer(call, &id, answer).await?,
        (None, true) => {
            let reason = arguments.text("reason");
            call.engine
                .cancel_interaction(call.caller, &id, reason)
                .await?
        }
        (Some(_), true) => {
            return Err(exactly_one(
                "both parameters 'answer' and 'cancel' are given",
            ));
        }
        (None, false) => return Err(exactly_one("neither 'answer' nor 'cancel' is given")),
    };
    Ok(ToolReply::status(&json!({
        "id": interaction.id,
        "status": interaction.state.as_str(),
        "kind": interaction.question.kind,
        "execution": interaction.question.execution.map(|id| id.short()),
    })))
}

fn exactly_one(problem: &str) -> ToolInterrupt {
    ApiError::value(format!("{problem}; allowed: one of them")).into()
}

async fn submit_answer(
    call: ToolCall<'_>,
    id: &str,
    answer: String,
) -> Result<Interaction, ApiError> {
    let interaction = call.engine.interaction(call.caller, id)?;
    if interaction.question.secret && interaction.is_open() {
        return Err(secret_refusal(call, &interaction));
    }
    Ok(call
        .engine
        .answer_interaction(call.caller, id, answer)
        .await?)
}

/// The error for a secret, with where to answer it instead.
fn secret_refusal(call: ToolCall<'_>, interaction: &Interaction) -> ApiError {
    let id = interaction.id;
    let person = "let a person answer it, at the command line or in the web interface";
    let hint = match interaction.question.execution {
        Some(process) if call.client_context.tools.offers("process_control") => format!(
            "{person}; or write to process {} with process_control; never make a secret up",
            process.short()
        ),
        Some(_) | None => format!("{person}; never make a secret up"),
    };
    let message = format!("interaction {id} asks for a secret, which is not taken here");
    ApiError::new(ErrorCode::Interaction, message).with_hint(hint)
}
