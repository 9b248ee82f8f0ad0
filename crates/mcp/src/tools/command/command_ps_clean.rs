//! `command_ps_clean`: remove ended processes.

use ostler_engine::CleanOutcome;
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::listing::HALF_ANSWER;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::pagination::json_chars;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_ps_clean",
    title: "",
    about: "Forget ended processes and their output; a result per id.",
    parameters: &[Parameter::required("pids", ParameterKind::List, "")],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let ids = arguments.list("pids");
    let outcomes = call.engine.clean(call.caller, &ids).await?;
    let results = outcomes
        .iter()
        .map(|(id, outcome)| json!({"pid": id, "result": describe_outcome(outcome)}));
    let (shown, omitted) = fitting(results);
    let mut body = json!({"results": shown});
    if omitted > 0 {
        let later = &outcomes[outcomes.len() - omitted..];
        let failed = later.iter().filter(|(_, it)| !is_removed(it)).count();
        body["omitted"] = json!({"success": omitted - failed, "failed": failed});
    }
    Ok(ToolReply::status(&body))
}

/// As many results as fit into an answer, and the number of the others.
fn fitting(results: impl Iterator<Item = Value>) -> (Vec<Value>, usize) {
    let (mut shown, mut omitted, mut room) = (Vec::new(), 0, HALF_ANSWER.chars);
    for result in results {
        room = room.saturating_sub(json_chars(&result) + 1);
        if room > 0 {
            shown.push(result);
        } else {
            omitted += 1;
        }
    }
    (shown, omitted)
}

const fn is_removed(outcome: &CleanOutcome) -> bool {
    match outcome {
        CleanOutcome::Cleaned | CleanOutcome::Discarded => true,
        CleanOutcome::Running | CleanOutcome::NotFound | CleanOutcome::Failed(_) => false,
    }
}

/// `success`, or `failed: reason`.
fn describe_outcome(outcome: &CleanOutcome) -> String {
    match outcome {
        CleanOutcome::Cleaned => "success".to_owned(),
        CleanOutcome::Discarded => {
            "success; changes to its workspace that nobody committed went with it".to_owned()
        }
        CleanOutcome::Running => "failed: it is still running; stop it first".to_owned(),
        CleanOutcome::NotFound => "failed: Process not found or access denied".to_owned(),
        CleanOutcome::Failed(reason) => format!("failed: {reason}"),
    }
}
