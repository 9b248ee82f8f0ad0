//! `ostler run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use ostler_api::{ShellStartBody, StartBody, StdinBody, StopBody};
use ostler_model::{ByteString, Command, ContextId, ExecutionId, StartOptions, TemplateRecord};
use tokio::time::timeout;

use super::attach::KeyArgs;
use super::isolation_args::IsolationArgs;
use super::start::{CommonArgs, print_started, resolve_directory, start};
use super::suspend_handler::SuspendSignals;
use super::{attached_run, isolation_args, stop, value_parsers};
use crate::attach::{self, AttachOptions, DetachKey, InitialView, window_size};
use crate::client::DaemonClient;
use crate::context::{CliContext, block_on};
use crate::daemon::in_process::InProcessEngine;
use crate::daemon::state_holder;
use crate::error::{CommandError, CommandResult};
use crate::paths::{DAEMON_SOCKET, make_scratch};

/// How long an interrupted start waits for the end of what it may have started. The daemon goes on
/// stopping it after that.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// What keys of the terminal do while a command runs.
const KEYS: &str = "\
Without --tty, ctrl-c passes SIGINT to the command; a second one within 10 s stops it, a third kills
it. Ctrl-z pauses the command with everything it started and stops this process; `fg` of the shell
lets both go on, and so does `bg` where the input is not the terminal (-n).";

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_help = KEYS)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) flags: RunFlags,
    /// The program and its arguments; no shell sees them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How a command is run and followed.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// End it after this long, for example 90 or 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    timeout: Option<Duration>,
    /// End it after this long without output
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    idle_timeout: Option<Duration>,
    /// In a terminal of its own, of the size of yours; what can be typed there tells
    /// `ostler attach --help`
    #[arg(short, long)]
    tty: bool,
    #[command(flatten)]
    key: KeyArgs,
    /// Give it no input, and leave that of this process to others, as in a loop that reads
    #[arg(short = 'n', long, conflicts_with = "tty")]
    no_stdin: bool,
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
    pub(crate) no_daemon: bool,
    /// With --detach: everything known of it, as JSON
    #[arg(long, requires = "detach")]
    json: bool,
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// Runs the command.
///
/// # Errors
/// When it cannot be started or followed.
pub(crate) fn run(context: &CliContext, args: RunArgs) -> CommandResult {
    let mut words = args.command.into_iter().map(ByteString::from);
    let program = words.next().unwrap_or_default();
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    run_command(context, args.flags, command, StartSource::default())
}

/// What a command is made from, and where it runs.
#[derive(Debug, Default)]
pub(crate) struct StartSource {
    /// The template that it was made from.
    pub(crate) template: Option<TemplateRecord>,
    /// The context that it runs in.
    pub(crate) context: Option<ContextId>,
}

/// Runs a command.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_command(
    context: &CliContext,
    flags: RunFlags,
    command: Command,
    source: StartSource,
) -> CommandResult {
    let (detach, json, in_process) = (flags.detach, flags.json, flags.no_daemon);
    let no_stdin = flags.no_stdin;
    let (tty, key) = (flags.tty, flags.key.detach_key.clone());
    let mut body = start_body(context, flags, command)?;
    body.template = source.template.map(Box::new);
    body.context = source.context;
    if detach {
        return block_on(run_detached(&context.client(), &body, json));
    }
    // An in-process engine ends with this client: there is nothing to reattach to.
    let key = if in_process { DetachKey::none() } else { key };
    let mode = if tty {
        RunMode::Terminal(key)
    } else {
        RunMode::from_stdin(&mut body, no_stdin)
    };
    block_on(async {
        if in_process {
            return run_in_process(context, &body, mode).await;
        }
        run_attached(context.client(), &body, mode).await
    })
}

/// How the input and output of the command are connected.
enum RunMode {
    Streams(attached_run::StdinMode),
    Terminal(DetachKey),
}

impl RunMode {
    fn from_stdin(body: &mut StartBody, no_stdin: bool) -> Self {
        let stdin = if no_stdin {
            attached_run::StdinMode::Empty
        } else {
            attached_run::StdinMode::open()
        };
        body.stdin = stdin.to_body();
        body.lossless_reader = true;
        Self::Streams(stdin)
    }
}

async fn run_detached(client: &DaemonClient, body: &StartBody, json: bool) -> CommandResult {
    let info = start(client, body).await?;
    isolation_args::warn_missing(&info);
    print_started(&info, json)
}

async fn run_attached(client: DaemonClient, body: &StartBody, mode: RunMode) -> CommandResult {
    let mut signals = attached_run::ForwardedSignals::install()?;
    let suspend = match &mode {
        RunMode::Streams(_) => Some(SuspendSignals::install()?),
        // What attaches to a terminal has its own.
        RunMode::Terminal(_) => None,
    };
    let started = tokio::select! {
        biased;
        started = start(&client, body) => Ok(started?),
        code = signals.wait_for_exit() => Err(code),
    };
    let info = match started {
        Ok(info) => info,
        Err(code) => {
            // The daemon cancels a start whose client disconnected, unless it has just answered.
            tokio::select! {
                () = stop_started(&client, body) => {}
                _again = signals.wait_for_exit() => {}
            }
            return Ok(code);
        }
    };
    isolation_args::warn_missing(&info);
    match mode {
        RunMode::Streams(stdin) => {
            attached_run::run_attached(client, &info, stdin, signals, suspend).await
        }
        RunMode::Terminal(key) => {
            let options = AttachOptions {
                id: info.id.clone(),
                watch: false,
                take_over: false,
                key,
                initial_view: InitialView::Start,
            };
            match attach::attach(client.clone(), options).await {
                Err(CommandError::BrokenPipe) => {
                    Err(attached_run::stop_unread(&client, &info, CommandError::BrokenPipe).await)
                }
                outcome => outcome,
            }
        }
    }
}

/// Stops what this client has started without learning that it runs: nobody else knows its id.
async fn stop_started(client: &DaemonClient, body: &StartBody) {
    let Some(id) = body.id else {
        return;
    };
    let request = StopBody {
        reason: Some("its client was interrupted before it started".to_owned()),
        ..StopBody::default()
    };
    // Where it was not started, there is nothing to stop; nor where the daemon has ended.
    let client = client.without_launch();
    let id = id.to_string();
    let stopped = timeout(STOP_WAIT, stop::stop(&client, &id, &request)).await;
    if stopped.is_err() {
        let limit = STOP_WAIT.as_secs();
        crate::print_note(&format!(
            "{id} has not ended within {limit} s of the interrupt and may still run"
        ));
    }
}

/// As with a daemon, with the engine in this process.
async fn run_in_process(context: &CliContext, body: &StartBody, mode: RunMode) -> CommandResult {
    let in_process = InProcessEngine::open(&context.config, &context.env).await?;
    if in_process.is_temporary() && body.options.sandbox.overlay {
        in_process.close().await;
        return Err(overlay_would_go(&state_holder(&context.dirs)));
    }
    let scratch = make_scratch(&context.env, "ostler-run-")?;
    let socket = scratch.join(DAEMON_SOCKET);
    let outcome = match in_process.listen(&socket) {
        Ok(()) => run_attached(DaemonClient::new(socket, None), body, mode).await,
        Err(error) => Err(error),
    };
    in_process.close().await;
    // No other user can have created files there.
    drop(std::fs::remove_dir_all(&scratch));
    outcome
}

/// Why a run on a temporary state directory has no overlay.
fn overlay_would_go(holder: &str) -> CommandError {
    CommandError::value(format!(
        "{holder} holds the state directory: what this run keeps apart would go with it"
    ))
    .with_hint("name another --state-dir, or run it with a daemon, or without --overlay")
}

fn start_body(
    context: &CliContext,
    mut args: RunFlags,
    command: Command,
) -> Result<StartBody, CommandError> {
    // Reported here rather than by a daemon that cannot start.
    drop(crate::config::policy::load(&context.config, &context.env)?);
    let window = || window_size().unwrap_or(ShellStartBody::SIZE);
    let mut body = StartBody::new(command, resolve_directory(args.common.cwd.take())?);
    body.stdin = StdinBody::Default;
    body.base_env = context.env.to_texts();
    let encoding = || context.config.client_policy().default_encoding;
    body.options = StartOptions {
        timeout: args.timeout,
        idle: args.idle_timeout,
        encoding: args.encoding.or_else(encoding),
        keep: args.keep,
        pty: args.tty.then(window),
        ..args.common.into_options(context, args.isolation)?
    };
    body.id = Some(ExecutionId::mint());
    body.cli = true;
    Ok(body)
}
