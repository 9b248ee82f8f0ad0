//! `ostler service detect`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use ostler_model::ServiceKind;
use ostler_server::wire::{DetectBody, DetectedBody, StartBody};

use super::args::command;
use super::ask::desk;
use crate::client::Body;
use crate::commands::start::variables;
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json, span};
use crate::setup::{Setup, block_on};

/// What a command exits with that is no service.
const EXIT_NONE: u8 = 1;

/// What `detect` takes.
#[derive(Debug, Args)]
pub(crate) struct DetectArgs {
    /// Working directory; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable it would get, such as PORT=4000
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments; one word with blanks is a line for sh
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Says which service a command is; exits with 1 where it is none.
///
/// # Errors
/// When the daemon cannot be asked.
pub(super) fn run(setup: &Setup, args: DetectArgs) -> Outcome {
    let desk = desk(setup, args.cwd)?;
    let mut body = StartBody::new(command(args.command), desk.cwd.clone());
    body.base_env = setup.env.to_texts();
    body.env = variables(setup, args.env)?;
    let body = Body::json(&body)?;
    let found: DetectBody = block_on(desk.client.call(Method::POST, "/api/v1/detect", body))?;
    let code = if found.service.is_some() {
        0
    } else {
        EXIT_NONE
    };
    if args.json {
        print_json(&found)?;
        return Ok(code);
    }
    match &found.service {
        Some(service) => print(service)?,
        None => {
            let mut out = Out::new();
            out.line("no service: it would run to its end as an ordinary command")?;
            out.flush()?;
        }
    }
    Ok(code)
}

fn print(found: &DetectedBody) -> Result<(), CommandError> {
    const NAME_CHARS: usize = 9;
    let port = match (found.port, found.default_port) {
        (Some(port), _) => Some(format!("{port}, as asked")),
        (None, Some(port)) => Some(format!("{port} unless told otherwise")),
        (None, None) => None,
    };
    let patterns = |list: &[String]| Some(list.join("  ")).filter(|told| !told.is_empty());
    let rows = [
        ("service", Some(format!("{} ({})", found.title, found.id))),
        ("kind", Some(kind(found.kind).to_owned())),
        ("runs", Some(found.normalised.clone())),
        ("port", port),
        ("ready", patterns(&found.ready_patterns)),
        ("failed", patterns(&found.fail_patterns)),
        ("waits", Some(span(millis(found.ready_timeout_ms)))),
        (
            "terminal",
            found.terminal.then(|| "it needs one".to_owned()),
        ),
    ];
    let mut out = Out::new();
    for (name, value) in rows {
        if let Some(value) = value {
            out.line(format!("{name:NAME_CHARS$} {value}"))?;
        }
    }
    out.flush()
}

fn millis(millis: u64) -> f64 {
    std::time::Duration::from_millis(millis).as_secs_f64()
}

const fn kind(kind: ServiceKind) -> &'static str {
    match kind {
        ServiceKind::Unknown => "unknown: what comes is taken",
        ServiceKind::Server => "server: it listens on a port",
        ServiceKind::Socket => "socket: it listens on a unix socket, or on none",
        ServiceKind::Watcher => "watcher: it watches files and listens on nothing",
        ServiceKind::Multi => "multi: it runs several others",
    }
}
