//! `ostler run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_model::{Command, ErrorCode, IsolationLevel, Text};
use ostler_server::wire::{InfoBody, StartBody, StdinBody};

use super::{parse, passthrough};
use crate::client::{Body, Client};
use crate::daemon::embedded::Embedded;
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::paths::temporary;
use crate::setup::{Setup, block_on};

/// What a shell shows when a program was not found.
const EXIT_NOT_FOUND: u8 = 127;
/// What a shell shows when a program could not be executed.
const EXIT_NOT_EXECUTABLE: u8 = 126;

/// What `run` takes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Working directory; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Set a variable, or pass ours on where only its name is given
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// End it after this long, for example 90 or 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    timeout: Option<Duration>,
    /// End it after this long without output
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    idle_timeout: Option<Duration>,
    /// A label to find it by; repeatable
    #[arg(short, long, value_name = "LABEL")]
    label: Vec<String>,
    /// What to call it
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
    /// How far to wall it off: basic, medium, high or container
    #[arg(long, value_name = "LEVEL", default_value = "medium", value_parser = parse::level)]
    isolation: IsolationLevel,
    /// Print its id and return at once
    #[arg(short, long)]
    detach: bool,
    /// Let it outlive its session
    #[arg(long)]
    keep: bool,
    /// How its output is to be decoded when it is read as text: a WHATWG label, or auto
    #[arg(long, value_name = "LABEL")]
    encoding: Option<String>,
    /// Run the engine in this process instead of the daemon
    #[arg(long, conflicts_with = "detach")]
    no_daemon: bool,
    /// With --detach: everything known of it, as JSON
    #[arg(long, requires = "detach")]
    json: bool,
    /// The program and its arguments; no shell sees them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
///
/// # Errors
/// When it cannot be started or followed.
pub(crate) fn run(setup: &Setup, args: RunArgs) -> Outcome {
    let (detach, json, alone) = (args.detach, args.json, args.no_daemon);
    let mut body = body(setup, args)?;
    if detach {
        return block_on(detached(&setup.client(), &body, json));
    }
    let stdin = passthrough::Stdin::open();
    body.stdin = stdin.request();
    block_on(async {
        if alone {
            return embedded(setup, &body, stdin).await;
        }
        attached(setup.client(), &body, stdin).await
    })
}

async fn detached(client: &Client, body: &StartBody, json: bool) -> Outcome {
    let info = start(client, body).await?;
    if json {
        print_json(&info)?;
    } else {
        let mut out = Out::new();
        out.line(&info.id)?;
        out.flush()?;
    }
    Ok(0)
}

async fn attached(client: Client, body: &StartBody, stdin: passthrough::Stdin) -> Outcome {
    let signals = passthrough::Signals::catch()?;
    let info = start(&client, body).await?;
    passthrough::follow(client, &info, stdin, signals).await
}

/// The same, with a daemon inside this process.
async fn embedded(setup: &Setup, body: &StartBody, stdin: passthrough::Stdin) -> Outcome {
    let engine = Embedded::open(&setup.config, &setup.env).await?;
    let name = format!("ostler-{}.sock", std::process::id());
    let socket = temporary(&setup.env).join(name);
    engine.listen(&socket)?;
    let outcome = attached(Client::new(socket.clone(), None), body, stdin).await;
    engine.close().await;
    // The socket lies where temporary files do; nobody else knows its name.
    drop(std::fs::remove_file(&socket));
    outcome
}

async fn start(client: &Client, body: &StartBody) -> Result<InfoBody, CommandError> {
    let body = Body::json(body)?;
    let answer = client.call(Method::POST, "/api/v1/executions", body).await;
    answer.map_err(as_a_shell)
}

/// A program that cannot run exits as it would in a shell.
fn as_a_shell(error: CommandError) -> CommandError {
    let born = error.to_string().contains("could not start");
    match error.code() {
        Some(ErrorCode::CommandExecution) if !born => error.with_exit(EXIT_NOT_FOUND),
        Some(ErrorCode::CommandExecution | ErrorCode::Permission) => {
            error.with_exit(EXIT_NOT_EXECUTABLE)
        }
        Some(_) | None => error,
    }
}

fn body(setup: &Setup, args: RunArgs) -> Result<StartBody, CommandError> {
    let mut words = args.command.into_iter().map(Text::from);
    let program = words.next().unwrap_or_default();
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    let policy = setup.config.front_policy();
    let mut body = StartBody::new(command, directory(args.cwd)?);
    body.stdin = StdinBody::Default;
    body.base_env = setup.env.to_texts();
    body.env = variables(setup, args.env)?;
    body.timeout_ms = args.timeout.map(parse::millis);
    body.idle_ms = args.idle_timeout.map(parse::millis);
    body.isolation = args.isolation;
    body.labels = args.label;
    body.description = args.description;
    body.encoding = args.encoding.or(policy.default_encoding);
    body.allowed = policy.allowed_commands;
    body.keep = args.keep;
    body.cli = true;
    Ok(body)
}

fn directory(given: Option<PathBuf>) -> Result<Text, CommandError> {
    let here = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the working directory is gone: {error}"),
        )
    })?;
    Ok(Text::from(
        given.map_or(here.clone(), |path| here.join(path)),
    ))
}

fn variables(setup: &Setup, given: Vec<OsString>) -> Result<Vec<(Text, Text)>, CommandError> {
    given
        .into_iter()
        .map(|pair| variable(setup, pair))
        .collect()
}

fn variable(setup: &Setup, pair: OsString) -> Result<(Text, Text), CommandError> {
    let bytes = Text::from(pair).into_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=');
    let (name, value) = match equals {
        Some(0) => return Err(CommandError::value("--env: the name is empty")),
        Some(at) => (&bytes[..at], Some(Text::from(&bytes[at + 1..]))),
        None => (&bytes[..], None),
    };
    let ours = || {
        let name = std::str::from_utf8(name).ok()?;
        setup
            .env
            .exact(name)
            .map(|value| Text::from(value.to_owned()))
    };
    let value = value.or_else(ours).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        CommandError::value(format!("--env {name}: there is no such variable here"))
            .with_hint("write --env NAME=VALUE")
    })?;
    Ok((Text::from(name), value))
}
