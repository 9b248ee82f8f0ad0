//! `ostler screen`.

use clap::Args;
use hyper::Method;
use ostler_server::wire::ScreenBody;

use super::ids;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// What `screen` takes.
#[derive(Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Which session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Rows, cursor, title, modes and size, as JSON
    #[arg(long)]
    json: bool,
}

/// Prints what is on the screen; of an ended session, what was on it last.
///
/// # Errors
/// When there is no such session.
pub(crate) fn run(setup: &Setup, args: &ScreenArgs) -> Outcome {
    let screen = block_on(screen(&setup.client(), &args.id))?;
    if args.json {
        print_json(&screen)?;
        return Ok(0);
    }
    let mut out = Out::new();
    out.printed_lines(screen.text().as_bytes())?;
    out.flush()?;
    Ok(0)
}

async fn screen(client: &Client, id: &str) -> Result<ScreenBody, CommandError> {
    let path = ids::path(id, "/screen");
    match client.call(Method::GET, &path, Body::None).await {
        Ok(screen) => Ok(screen),
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}
