//! `ostler resize`.

use clap::Args;
use hyper::Method;
use ostler_api::ResizeBody;

use super::ids;
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;

/// What `resize` takes.
#[derive(Debug, Args)]
pub(crate) struct ResizeArgs {
    /// Which session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Columns and rows, for example 120x40
    #[arg(value_name = "COLSxROWS", value_parser = parse_size)]
    size: ResizeBody,
}

fn parse_size(text: &str) -> Result<ResizeBody, String> {
    let invalid = || "write columns and rows, both at least 1, such as 120x40".to_owned();
    let (cols, rows) = text.split_once('x').ok_or_else(invalid)?;
    let number = |word: &str| word.parse::<u16>().ok().filter(|&number| number > 0);
    let (cols, rows) = number(cols).zip(number(rows)).ok_or_else(invalid)?;
    Ok(ResizeBody { cols, rows })
}

/// Resizes the terminal of a session.
///
/// # Errors
/// When there is no such session, or another client holds its writer lease.
pub(crate) fn run(context: &CliContext, args: &ResizeArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let path = ids::path(&args.id, "/resize");
        match client
            .call_bytes(Method::POST, &path, RequestBody::json(&args.size)?)
            .await
        {
            Ok(_) => Ok(0),
            Err(error) => Err(ids::suggest(&client, &args.id, error).await),
        }
    })
}
