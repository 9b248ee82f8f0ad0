//! `ostler service define` and `ostler service forget`.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;

use super::args::ServiceArgs;
use super::client::{Candidates, ServiceClient, service_client};
use super::stop_restart::{NamesArgs, print_name};
use crate::batch::BatchExit;
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;
use crate::output::StdoutWriter;

/// What `define` takes.
#[derive(Debug, Args)]
pub(crate) struct DefineArgs {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    service: ServiceArgs,
    /// After --: the program and its arguments; one word with blanks is a line for sh
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Stores a definition.
///
/// # Errors
/// When it is invalid, or cannot be stored.
pub(super) fn define(context: &CliContext, args: DefineArgs) -> CommandResult {
    let client = service_client(context, None)?;
    let name = args.name;
    let mut body = args
        .service
        .into_body(context, Some(name.clone()), args.command)?;
    // A definition is started by a later client, in the environment of that client.
    body.start.base_env.clear();
    let (path, body) = (ServiceClient::path(&name, ""), RequestBody::json(&body)?);
    block_on(client.daemon.call_bytes(Method::PUT, &path, body))?;
    let mut out = StdoutWriter::new();
    out.write_line(&name)?;
    out.flush()?;
    Ok(0)
}

/// Removes definitions.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn forget(context: &CliContext, args: &NamesArgs) -> CommandResult {
    let client = service_client(context, None)?;
    block_on(async {
        let mut exit = BatchExit::default();
        for name in &args.names {
            let path = ServiceClient::path(name, "");
            let result = client
                .daemon
                .call_bytes(Method::DELETE, &path, RequestBody::None)
                .await;
            let removed = client
                .with_suggestion(&[name], Candidates::DefinedByApi, result)
                .await;
            exit.record(removed.and_then(|_| print_name(name)))?;
        }
        Ok(exit.code())
    })
}
