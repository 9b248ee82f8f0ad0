//! Verbs that take ids.

use std::future::Future;

use clap::Args;
use hyper::Method;
use ostler_model::ErrorCode;
use ostler_server::wire::InfoBody;

use super::id_alias::{TAKEN, listed, whole};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, nearest, print_json};
use crate::setup::{Setup, block_on};

/// The path of what belongs to one execution.
pub(crate) fn path(id: &str, rest: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/api/v1/executions/{id}{rest}")
}

/// What is known of one execution.
///
/// # Errors
/// As the daemon answers; an unknown id with what it looks like.
pub(crate) async fn info(client: &Client, id: &str) -> Result<InfoBody, CommandError> {
    let answer = client.call(Method::GET, &path(id, ""), Body::None).await;
    match answer {
        Ok(info) => Ok(info),
        Err(error) => Err(suggest(client, id, error).await),
    }
}

/// Does the same for each id; goes on after an error, and exits with the first one's code.
pub(crate) async fn each<F, Fut>(client: &Client, ids: &[String], verb: F) -> Outcome
where
    F: Fn(String) -> Fut,
    Fut: Future<Output = Result<(), CommandError>>,
{
    let mut code = 0;
    for id in ids {
        let done = match whole(client, id).await {
            Ok(whole) => verb(whole).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            let error = suggest(client, id, error).await;
            if matches!(error, CommandError::BrokenPipe) {
                return Err(error);
            }
            crate::report(&error);
            code = if code == 0 { error.exit_code() } else { code };
        }
    }
    Ok(code)
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
/// When the daemon cannot be asked.
pub(crate) fn post_each(setup: &Setup, args: &IdListArgs, rest: &str) -> Outcome {
    let client = setup.client();
    block_on(each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let path = path(&id, rest);
            let info: InfoBody = client.call(Method::POST, &path, Body::None).await?;
            if args.json {
                return print_json(&info);
            }
            let mut out = Out::new();
            out.line(&info.id)?;
            out.flush()
        }
    }))
}

/// The same error with the id in it; where no execution has it, with the one that looks most
/// like it, or with what is taken.
pub(crate) async fn suggest(client: &Client, id: &str, error: CommandError) -> CommandError {
    let unknown = [ErrorCode::ProcessNotFound, ErrorCode::SessionNotFound];
    if !error.code().is_some_and(|code| unknown.contains(&code)) {
        return error;
    }
    let error = error.about(id).with_hint(TAKEN);
    let Ok(list) = listed(client, &[("limit", "1000")]).await else {
        return error;
    };
    let known = list.executions.iter().map(|info| info.id.as_str());
    let Some(like) = nearest(id, known) else {
        return error;
    };
    let command = list.executions.iter().find(|info| info.id == like);
    let command = command.map_or("", |info| info.command.as_str());
    error.with_hint(format!("did you mean {like} ({command})?"))
}
