//! `ostler run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ostler_model::{Command, Text};
use ostler_server::wire::{ShellStartBody, StartBody, StdinBody};

use super::attach::KeyArgs;
use super::start::{directory, start, told, variables};
use super::walls::WallArgs;
use super::{parse, passthrough, walls};
use crate::attach::{self, Begin, DetachKey, Wish, window_size};
use crate::client::Client;
use crate::daemon::embedded::Embedded;
use crate::error::{CommandError, Outcome};
use crate::paths::temporary;
use crate::setup::{Setup, block_on};

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
            let signals = passthrough::Signals::catch()?;
            let info = start(&client, body).await?;
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
    let name = format!("ostler-{}.sock", std::process::id());
    let socket = temporary(&setup.env).join(name);
    engine.listen(&socket)?;
    let outcome = attached(Client::new(socket.clone(), None), body, way).await;
    engine.close().await;
    // The socket lies where temporary files do; nobody else knows its name.
    drop(std::fs::remove_file(&socket));
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
    let mut body = StartBody::new(command, directory(args.cwd)?);
    body.stdin = StdinBody::Default;
    body.base_env = setup.env.to_texts();
    body.env = variables(setup, args.env)?;
    body.timeout_ms = args.timeout.map(parse::millis);
    body.idle_ms = args.idle_timeout.map(parse::millis);
    let asked = args.walls.walls(&setup.config)?;
    body.isolation = asked.level;
    body.confine = asked.confine;
    body.limits = asked.limits;
    body.secrets = asked.secrets;
    body.approval = asked.approval;
    body.labels = args.label;
    body.description = args.description;
    body.encoding = args.encoding.or(policy.default_encoding);
    body.allowed = policy.allowed_commands;
    body.keep = args.keep;
    let size = || window_size().unwrap_or(ShellStartBody::SIZE);
    body.pty = args.tty.then(size);
    body.cli = true;
    Ok(body)
}
