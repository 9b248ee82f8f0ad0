//! `ostler restart`.

use clap::Args;
use hyper::Method;
use ostler_api::{ExecutionBody, RerunBody};
use ostler_model::{ErrorCode, ExecutionId};

use super::{approve, ids, isolation_args, start};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// What `restart` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
The command, its directory, --env, limits, restrictions, labels and the terminal are as they were; its
input is at its end, what it inherits of the environment and its secrets are yours. What cannot
start again, or needs a person's word and does not get it, is not stopped. Services are restarted by
`ostler service restart NAME`.")]
pub(crate) struct RestartArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Everything known of the new one, as JSON
    #[arg(long)]
    json: bool,
}

/// Stops the execution if it is running, starts the same command again and prints the new id.
///
/// # Errors
/// When there is no such execution, or it cannot be stopped or started.
pub(crate) fn run(context: &CliContext, args: &RestartArgs) -> CommandResult {
    let client = context.client();
    let body = RerunBody {
        id: Some(ExecutionId::mint()),
        base_env: context.env.to_texts(),
        stop: true,
        approval: None,
        allowed: context.config.client_policy().allowed_commands,
        cli: true,
    };
    block_on(async {
        let previous = ids::info(&client, &args.id).await?;
        if let Some(service) = &previous.service {
            let problem = format!("{} is a service", previous.id);
            return Err(CommandError::new(ErrorCode::Value, problem)
                .with_hint(format!("`ostler service restart {}`", service.name)));
        }
        let info = restart_with_approval(&client, &previous, body).await?;
        isolation_args::warn_missing(&info);
        start::print_started(&info, args.json)
    })
}

/// Requests the restart, and prompts for an approval if a rule requires one.
async fn restart_with_approval(
    client: &DaemonClient,
    previous: &ExecutionBody,
    mut body: RerunBody,
) -> Result<ExecutionBody, CommandError> {
    let error = match post(client, &previous.id, &body).await {
        Err(error) if error.approval().is_some() => error,
        result => return result.map_err(start::with_shell_exit_code),
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let reason = error.message().unwrap_or_default();
    if approve::ask_at_terminal(client, &id, &previous.command, reason).await? != Some(true) {
        return Err(error);
    }
    body.approval = Some(id);
    post(client, &previous.id, &body)
        .await
        .map_err(start::with_shell_exit_code)
}

/// Sends the request. The body has an id, so it can be repeated.
async fn post(
    client: &DaemonClient,
    id: &str,
    body: &RerunBody,
) -> Result<ExecutionBody, CommandError> {
    let path = ids::path(id, "/again");
    let starting = client.call_idempotent(Method::POST, &path, RequestBody::json(body)?);
    start::with_queue_notice(client, body.id, starting).await
}
