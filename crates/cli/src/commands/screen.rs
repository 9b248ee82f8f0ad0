//! `ostler screen`.

use clap::Args;
use hyper::Method;
use ostler_api::ScreenBody;

use super::ids;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

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

/// Prints the screen of a session; of an ended one, the last screen.
///
/// # Errors
/// When there is no such session.
pub(crate) fn run(context: &CliContext, args: &ScreenArgs) -> CommandResult {
    let screen = block_on(fetch_screen(&context.client(), &args.id))?;
    if args.json {
        print_json(&screen)?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    out.output_lines(screen.text().as_bytes())?;
    out.flush()?;
    Ok(0)
}

async fn fetch_screen(client: &DaemonClient, id: &str) -> Result<ScreenBody, CommandError> {
    let path = ids::path(id, "/screen");
    match client.call(Method::GET, &path, RequestBody::None).await {
        Ok(screen) => Ok(screen),
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}
