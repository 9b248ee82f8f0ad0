//! `ostler shell`.

use clap::Args;
use hyper::Method;
use ostler_model::{ExecutionId, ShellKind};
use ostler_server::wire::{InfoBody, ShellStartBody};

use super::attach::{KeyArgs, MENU};
use super::start::CommonArgs;
use super::walls::WallArgs;
use super::{start, walls};
use crate::attach::{self, Begin, Wish, window_size};
use crate::client::Body;
use crate::error::Outcome;
use crate::setup::{Setup, block_on};

/// What `shell` takes.
#[derive(Debug, Args)]
#[command(after_help = MENU)]
pub(crate) struct ShellArgs {
    /// Which shell: bash, zsh or fish; yours unless given, or bash where yours is none of them
    #[arg(value_name = "SHELL")]
    kind: Option<ShellKind>,
    #[command(flatten)]
    common: CommonArgs,
    /// Print its id and return at once
    #[arg(short, long)]
    detach: bool,
    /// With --detach: everything known of it, as JSON
    #[arg(long, requires = "detach")]
    json: bool,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    walls: WallArgs,
}

/// Starts the shell.
///
/// # Errors
/// When it cannot be started, or not attached to.
pub(crate) fn run(setup: &Setup, args: ShellArgs) -> Outcome {
    let kind = args.kind.unwrap_or_else(|| own_shell(setup));
    let mut body = ShellStartBody::new(kind, start::directory(args.common.cwd)?);
    let size = window_size().unwrap_or(ShellStartBody::SIZE);
    (body.cols, body.rows) = (size.cols, size.rows);
    body.base_env = setup.env.to_texts();
    body.inherit_env = Some(start::inherits(setup, args.common.clean_env));
    body.env = start::variables(setup, args.common.env)?;
    body.labels = args.common.label;
    body.description = args.common.description;
    let asked = args.walls.walls(&setup.config)?;
    body.isolation = asked.level;
    body.confine = asked.confine;
    body.limits = asked.limits;
    body.secrets = asked.secrets;
    body.approval = asked.approval;
    body.allowed = setup.config.front_policy().allowed_commands;
    body.id = Some(ExecutionId::mint());
    body.cli = true;
    let client = setup.client();
    block_on(async {
        let asked = client.call_repeatable(Method::POST, "/api/v1/shells", Body::json(&body)?);
        let info: InfoBody = asked.await.map_err(start::as_a_shell)?;
        walls::tell_missing(&info);
        if args.detach {
            return start::told(&info, args.json);
        }
        let wish = Wish {
            id: info.id,
            watch: false,
            take_over: false,
            key: args.key.detach_key,
            begin: Begin::Start,
        };
        attach::attach(client, wish).await
    })
}

/// The shell of whoever asks, where it can tell about its commands.
fn own_shell(setup: &Setup) -> ShellKind {
    let own = setup.env.exact("SHELL").and_then(|shell| shell.to_str());
    own.and_then(|shell| shell.parse().ok())
        .unwrap_or(ShellKind::Bash)
}
