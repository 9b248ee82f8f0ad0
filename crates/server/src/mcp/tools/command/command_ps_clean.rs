//! `command_ps_clean`: forget ended processes.

use ostler_engine::CleanOutcome;
use serde_json::json;

use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_clean",
    title: "",
    about: "Forget ended processes and their output; a result per id.",
    parameters: &[Parameter::required("pids", Kind::List, "")],
    hints: Hints::ENDS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let ids = arguments.list("pids");
    let outcomes = call.engine.clean(call.caller, &ids).await?;
    let results: Vec<_> = outcomes
        .iter()
        .map(|(id, outcome)| json!({"pid": id, "result": told(outcome)}))
        .collect();
    Ok(Reply::status(&json!({"results": results})))
}

/// `success`, or `failed: reason`.
fn told(outcome: &CleanOutcome) -> String {
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
