//! `command_ps_clean`: remove ended processes.

use ostler_engine::CleanOutcome;
use serde_json::json;

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
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
    let results: Vec<_> = outcomes
        .iter()
        .map(|(id, outcome)| json!({"pid": id, "result": describe_outcome(outcome)}))
        .collect();
    Ok(ToolReply::status(&json!({"results": results})))
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
