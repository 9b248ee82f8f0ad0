//! Common parts of verbs that take ids.

use std::future::Future;

use clap::Args;
use hyper::Method;
use ostler_api::ExecutionBody;
use ostler_model::ErrorCode;
use ostler_model::suggestion::nearest;

use super::id_alias::{ID_HINT, list_executions, resolve};
use crate::batch::BatchExit;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

/// The REST path of a resource below one execution.
pub(crate) fn path(id: &str, rest: &str) -> String {
    format!("/api/v1/executions/{}{rest}", encode(id))
}

/// A path below one process, as which the process routes have an execution.
pub(crate) fn process_path(id: &str, rest: &str) -> String {
    format!("/api/process/{}{rest}", encode(id))
}

fn encode(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

/// Fetches one execution.
///
/// # Errors
/// As the daemon responds; an unknown id with a suggestion.
pub(crate) async fn info(client: &DaemonClient, id: &str) -> Result<ExecutionBody, CommandError> {
    let result = client
        .call(Method::GET, &path(id, ""), RequestBody::None)
        .await;
    match result {
        Ok(info) => Ok(info),
        Err(error) => Err(suggest(client, id, error).await),
    }
}

/// Calls the verb for each id; continues after an error, and returns the first error's exit code.
pub(crate) async fn for_each<F, Fut>(
    client: &DaemonClient,
    ids: &[String],
    action: F,
) -> CommandResult
where
    F: Fn(String) -> Fut,
    Fut: Future<Output = Result<(), CommandError>>,
{
    let mut exit = BatchExit::default();
    for id in ids {
        let result = match resolve(client, id).await {
            Ok(id) => action(id).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => Ok(()),
            Err(error) => Err(name_subject(suggest(client, id, error).await, id, ids)),
        };
        exit.record(result)?;
    }
    Ok(exit.code())
}

/// The same error; of several ids, it names the one that it is about.
pub(crate) fn name_subject(error: CommandError, id: &str, ids: &[String]) -> CommandError {
    if ids.len() > 1 && !error.to_string().contains(id) {
        return error.with_subject(id);
    }
    error
}

/// Arguments of verbs that act on a list of executions.
#[derive(Debug, Args)]
pub(crate) struct IdListArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Everything known of each, as JSON
    #[arg(long)]
    json: bool,
}

/// Sends a POST to this path of each execution, and prints the id of each that accepted it.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn post_each(context: &CliContext, args: &IdListArgs, rest: &str) -> CommandResult {
    let client = context.client();
    block_on(for_each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let path = path(&id, rest);
            let info: ExecutionBody = client.call(Method::POST, &path, RequestBody::None).await?;
            if args.json {
                return print_json(&info);
            }
            let mut out = StdoutWriter::new();
            out.write_line(&info.id)?;
            out.flush()
        }
    }))
}

/// The same error with the id in it; for an unknown id, with the most similar one, or with the
/// allowed forms.
pub(crate) async fn suggest(client: &DaemonClient, id: &str, error: CommandError) -> CommandError {
    let unknown = [ErrorCode::ProcessNotFound, ErrorCode::SessionNotFound];
    if !error.code().is_some_and(|code| unknown.contains(&code)) {
        return error;
    }
    if let Some(service) = living_service(client, id).await {
        return error.with_subject(id).with_hint(format!(
            "{id} is a service: `ostler service logs {id}` shows its output, `ostler service --help` \
             what else takes its name; as an execution it is {service}"
        ));
    }
    let error = error.with_subject(id).with_hint(ID_HINT);
    let Ok(list) = list_executions(client, &[("limit", "1000")]).await else {
        return error;
    };
    let ids = list.executions.iter().map(|info| info.id.as_str());
    let Some(suggestion) = nearest(id, ids) else {
        return error;
    };
    let command = list.executions.iter().find(|info| info.id == suggestion);
    let command = command.map_or("", |info| info.command.as_str());
    error.with_hint(format!("did you mean {suggestion} ({command})?"))
}

/// The id of the living service with this name.
async fn living_service(client: &DaemonClient, name: &str) -> Option<String> {
    let query = [
        ("service", "true"),
        ("status", "running"),
        ("limit", "1000"),
    ];
    let list = list_executions(client, &query).await.ok()?;
    let is_meant = |info: &ExecutionBody| {
        let service = info.service.as_deref();
        service.is_some_and(|service| service.name == name)
    };
    let info = list.executions.into_iter().find(is_meant)?;
    Some(info.id)
}
