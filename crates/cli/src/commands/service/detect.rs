//! `ostler service detect`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_api::{DetectResponse, DetectedServiceBody, StartBody};
use ostler_model::ServiceKind;
use ostler_model::duration;

use super::args::parse_command;
use super::client::service_client;
use crate::client::RequestBody;
use crate::commands::start::parse_variables;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

/// The exit code for a command that is not a service.
const EXIT_NOT_DETECTED: u8 = 1;

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

/// Reports which kind of service a command is; exits with 1 where it is none.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: DetectArgs) -> CommandResult {
    let client = service_client(context, args.cwd)?;
    let mut body = StartBody::new(parse_command(args.command), client.cwd.clone());
    body.base_env = context.env.to_texts();
    body.options.set_env = parse_variables(context, args.env)?;
    let body = RequestBody::json(&body)?;
    let detected: DetectResponse =
        block_on(client.daemon.call(Method::POST, "/api/v1/detect", body))?;
    let code = if detected.service.is_some() {
        0
    } else {
        EXIT_NOT_DETECTED
    };
    if args.json {
        print_json(&detected)?;
        return Ok(code);
    }
    match &detected.service {
        Some(service) => print_detected(service)?,
        None => {
            let mut out = StdoutWriter::new();
            out.write_line("no service: it would run to its end as an ordinary command")?;
            out.flush()?;
        }
    }
    Ok(code)
}

fn print_detected(service: &DetectedServiceBody) -> Result<(), CommandError> {
    const NAME_CHARS: usize = 9;
    let port = match (service.port, service.default_port) {
        (Some(port), _) => Some(format!("{port}, as asked")),
        (None, Some(port)) => Some(format!("{port} unless told otherwise")),
        (None, None) => None,
    };
    let patterns = |list: &[String]| Some(list.join("  ")).filter(|text| !text.is_empty());
    let rows = [
        (
            "service",
            Some(format!("{} ({})", service.title, service.id)),
        ),
        ("kind", Some(describe_kind(service.kind).to_owned())),
        ("runs", Some(service.normalised.clone())),
        ("port", port),
        ("ready", patterns(&service.ready_patterns)),
        ("failed", patterns(&service.fail_patterns)),
        (
            "waits",
            Some(duration::compact(Duration::from_millis(
                service.ready_timeout_ms,
            ))),
        ),
        (
            "terminal",
            service.terminal.then(|| "it needs one".to_owned()),
        ),
    ];
    let mut out = StdoutWriter::new();
    for (name, value) in rows {
        if let Some(value) = value {
            out.write_line(format!("{name:NAME_CHARS$} {value}"))?;
        }
    }
    out.flush()
}

const fn describe_kind(kind: ServiceKind) -> &'static str {
    match kind {
        ServiceKind::Unknown => "unknown: what comes is taken",
        ServiceKind::Server => "server: it listens on a port",
        ServiceKind::Socket => "socket: it listens on a unix socket, or on none",
        ServiceKind::Watcher => "watcher: it watches files and listens on nothing",
        ServiceKind::Multi => "multi: it runs several others",
    }
}
