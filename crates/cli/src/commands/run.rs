//! `ostler run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use ostler_model::{Command, ExecutionId, Text};
use ostler_server::wire::{ShellStartBody, StartBody, StdinBody};

use super::attach::KeyArgs;
use super::start::{CommonArgs, directory, inherits, start, told, variables};
use super::walls::WallArgs;
use super::{parse, passthrough, walls};
use crate::attach::{self, Begin, DetachKey, Wish, window_size};
use crate::client::Client;
use crate::daemon::embedded::Embedded;
use crate::error::{CommandError, Outcome};
use crate::paths::{DAEMON_SOCKET, make_scratch};
use crate::setup::{Setup, block_on};

/// What `run` takes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// End it after this long, for example 90 or 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    timeout: Option<Duration>,
    /// End it after this long without output
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    idle_timeout: Option<Duration>,
    /// In a terminal of its own, of the size of yours; what can be typed there tells
    /// `ostler attach --help`
    #[arg(short, long)]
    tty: bool,
    #[command(flatten)]
    key: KeyArgs,
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
    #[command(flatten)]
    walls: WallArgs,
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
    let (tty, key) = (args.tty, args.key.detach_key.clone());
    let mut body = body(setup, args)?;
    if detach {
        return block_on(detached(&setup.client(), &body, json));
    }
    // Alone, it ends with us: there is nothing to come back to.
    let key = if alone { DetachKey::none() } else { key };
    let way = if tty {
        Way::Terminal(key)
    } else {
        Way::streams(&mut body)
    };
    block_on(async {
        if alone {
            return embedded(setup, &body, way).await;
        }
        attached(setup.client(), &body, way).await
    })
}

/// How its input and output reach us.
enum Way {
    Streams(passthrough::Stdin),
    Terminal(DetachKey),
}

impl Way {
    fn streams(body: &mut StartBody) -> Self {
        let stdin = passthrough::Stdin::open();
        body.stdin = stdin.request();
        body.lossless_reader = true;
        Self::Streams(stdin)
    }
}

async fn detached(client: &Client, body: &StartBody, json: bool) -> Outcome {
    let info = start(client, body).await?;
    walls::tell_missing(&info);
    told(&info, json)
}

async fn attached(client: Client, body: &StartBody, way: Way) -> Outcome {
    match way {
        Way::Streams(stdin) => {
            let mut signals = passthrough::Signals::catch()?;
            // A start that nobody waits for any more is cancelled by the daemon.
            let info = tokio::select! {
                started = start(&client, body) => started?,
                code = signals.leave() => return Ok(code),
            };
            walls::tell_missing(&info);
            passthrough::follow(client, &info, stdin, signals).await
        }
        Way::Terminal(key) => {
            let info = start(&client, body).await?;
            walls::tell_missing(&info);
            let wish = Wish {
                id: info.id.clone(),
                watch: false,
                take_over: false,
                key,
                begin: Begin::Start,
            };
            match attach::attach(client.clone(), wish).await {
                Err(CommandError::BrokenPipe) => {
                    Err(passthrough::unread(&client, &info, CommandError::BrokenPipe).await)
                }
                outcome => outcome,
            }
        }
    }
}

/// The same, with a daemon inside this process.
async fn embedded(setup: &Setup, body: &StartBody, way: Way) -> Outcome {
    let engine = Embedded::open(&setup.config, &setup.env).await?;
    let scratch = make_scratch(&setup.env, "ostler-run-")?;
    let socket = scratch.join(DAEMON_SOCKET);
    let outcome = match engine.listen(&socket) {
        Ok(()) => attached(Client::new(socket, None), body, way).await,
        Err(error) => Err(error),
    };
    engine.close().await;
    // Nobody else can have put anything there.
    drop(std::fs::remove_dir_all(&scratch));
    outcome
}

fn body(setup: &Setup, args: RunArgs) -> Result<StartBody, CommandError> {
    let mut words = args.command.into_iter().map(Text::from);
    let program = words.next().unwrap_or_default();
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    // Told here, and not by a daemon that cannot start.
    drop(crate::config::policy::load(&setup.config, &setup.env)?);
    let policy = setup.config.front_policy();
    let mut body = StartBody::new(command, directory(args.common.cwd)?);
    body.stdin = StdinBody::Default;
    body.base_env = setup.env.to_texts();
    body.inherit_env = Some(inherits(setup, args.common.clean_env));
    body.env = variables(setup, args.common.env)?;
    body.timeout_ms = args.timeout.map(parse::millis);
    body.idle_ms = args.idle_timeout.map(parse::millis);
    let asked = args.walls.walls(&setup.config)?;
    body.isolation = asked.level;
    body.confine = asked.confine;
    body.limits = asked.limits;
    body.secrets = asked.secrets;
    body.approval = asked.approval;
    body.labels = args.common.label;
    body.description = args.common.description;
    body.encoding = args.encoding.or(policy.default_encoding);
    body.allowed = policy.allowed_commands;
    body.keep = args.keep;
    let size = || window_size().unwrap_or(ShellStartBody::SIZE);
    body.pty = args.tty.then(size);
    body.id = Some(ExecutionId::mint());
    body.cli = true;
    Ok(body)
}
