//! `ostler service define` and `ostler service forget`.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;

use super::args::ServiceArgs;
use super::ask::{Desk, desk};
use super::control::NamesArgs;
use crate::client::Body;
use crate::error::{CommandError, Outcome};
use crate::output::Out;
use crate::setup::{Setup, block_on};

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

/// Keeps a definition.
///
/// # Errors
/// When it cannot be, or cannot be kept.
pub(super) fn define(setup: &Setup, args: DefineArgs) -> Outcome {
    let desk = desk(setup, None)?;
    let name = args.name;
    let mut body = args.service.body(setup, Some(name.clone()), args.command)?;
    // A definition is started by whoever asks for it later, in that one's environment.
    body.start.base_env.clear();
    let (path, body) = (Desk::path(&name, ""), Body::json(&body)?);
    block_on(desk.client.bytes(Method::PUT, &path, body))?;
    let mut out = Out::new();
    out.line(&name)?;
    out.flush()?;
    Ok(0)
}

/// Forgets definitions.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn forget(setup: &Setup, args: &NamesArgs) -> Outcome {
    let desk = desk(setup, None)?;
    block_on(async {
        let mut code = 0;
        for name in &args.names {
            let path = Desk::path(name, "");
            let forgotten = desk.client.bytes(Method::DELETE, &path, Body::None).await;
            match desk.or_suggest(name, forgotten).await {
                Ok(_) => {
                    let mut out = Out::new();
                    out.line(name)?;
                    out.flush()?;
                }
                Err(CommandError::BrokenPipe) => return Err(CommandError::BrokenPipe),
                Err(error) => {
                    crate::report(&error);
                    code = if code == 0 { error.exit_code() } else { code };
                }
            }
        }
        Ok(code)
    })
}
