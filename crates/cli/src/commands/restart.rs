//! `ostler restart`.

use clap::Args;
use hyper::Method;
use ostler_model::{ErrorCode, ExecutionId};
use ostler_server::wire::{AgainBody, InfoBody};

use super::{approve, ids, start, walls};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// What `restart` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
The command, its directory, --env, limits, walls, labels and the terminal are as they were; its
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

/// Stops it where it runs, starts the same again and prints the new id.
///
/// # Errors
/// When there is no such command, or it cannot be stopped or started.
pub(crate) fn run(setup: &Setup, args: &RestartArgs) -> Outcome {
    let client = setup.client();
    let body = AgainBody {
        id: Some(ExecutionId::mint()),
        base_env: setup.env.to_texts(),
        stop: true,
        approval: None,
        allowed: setup.config.front_policy().allowed_commands,
        cli: true,
    };
    block_on(async {
        let before = ids::info(&client, &args.id).await?;
        if let Some(service) = &before.service {
            let problem = format!("{} is a service", before.id);
            return Err(CommandError::new(ErrorCode::Value, problem)
                .with_hint(format!("`ostler service restart {}`", service.name)));
        }
        let info = again(&client, &before, body).await?;
        walls::tell_missing(&info);
        start::told(&info, args.json)
    })
}

/// Asks for it, and a person where a rule wants one asked.
async fn again(
    client: &Client,
    before: &InfoBody,
    mut body: AgainBody,
) -> Result<InfoBody, CommandError> {
    let error = match post(client, &before.id, &body).await {
        Err(error) if error.approval().is_some() => error,
        answer => return answer.map_err(start::as_a_shell),
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let what = (&*before.command, error.told().unwrap_or_default());
    if approve::at_terminal(client, &id, what).await? != Some(true) {
        return Err(error);
    }
    body.approval = Some(id);
    post(client, &before.id, &body)
        .await
        .map_err(start::as_a_shell)
}

/// The body has an id, so it can be repeated.
async fn post(client: &Client, id: &str, body: &AgainBody) -> Result<InfoBody, CommandError> {
    let path = ids::path(id, "/again");
    let starting = client.call_repeatable(Method::POST, &path, Body::json(body)?);
    start::in_turn(client, body.id, starting).await
}
