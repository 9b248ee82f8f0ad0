//! `ostler resume`.

use clap::Args;
use hyper::Method;
use ostler_server::wire::InfoBody;

use super::ids;
use crate::client::Body;
use crate::error::Outcome;
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// What `resume` takes.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Everything known of each, as JSON
    #[arg(long)]
    json: bool,
}

/// Lets go on each execution's whole tree.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &ResumeArgs) -> Outcome {
    let client = setup.client();
    block_on(ids::each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let path = ids::path(&id, "/resume");
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
