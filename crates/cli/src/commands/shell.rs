//! `ostler shell`.

use clap::Args;
use hyper::Method;
use ostler_api::{ExecutionBody, ShellStartBody};
use ostler_model::{ExecutionId, ShellKind};

use super::attach::{KeyArgs, MENU};
use super::isolation_args::IsolationArgs;
use super::start::CommonArgs;
use super::{isolation_args, start};
use crate::attach::{self, AttachOptions, InitialView, window_size};
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;

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
    isolation: IsolationArgs,
}

/// Starts the shell.
///
/// # Errors
/// When it cannot be started or attached to.
pub(crate) fn run(context: &CliContext, args: ShellArgs) -> CommandResult {
    let kind = args.kind.unwrap_or_else(|| login_shell(context));
    let mut common = args.common;
    let mut body = ShellStartBody::new(kind, start::resolve_directory(common.cwd.take())?);
    let size = window_size().unwrap_or(ShellStartBody::SIZE);
    (body.cols, body.rows) = (size.cols, size.rows);
    body.base_env = context.env.to_texts();
    body.options = common.into_options(context, args.isolation)?;
    body.id = Some(ExecutionId::mint());
    body.cli = true;
    let client = context.client();
    block_on(async {
        let response =
            client.call_idempotent(Method::POST, "/api/v1/shells", RequestBody::json(&body)?);
        let info: ExecutionBody = response.await.map_err(start::with_shell_exit_code)?;
        isolation_args::warn_missing(&info);
        if args.detach {
            return start::print_started(&info, args.json);
        }
        let options = AttachOptions {
            id: info.id,
            watch: false,
            take_over: false,
            key: args.key.detach_key,
            initial_view: InitialView::Start,
        };
        attach::attach(client, options).await
    })
}

/// The caller's login shell, if it can be integrated.
fn login_shell(context: &CliContext) -> ShellKind {
    let own = context.env.exact("SHELL").and_then(|shell| shell.to_str());
    own.and_then(|shell| shell.parse().ok())
        .unwrap_or(ShellKind::Bash)
}
