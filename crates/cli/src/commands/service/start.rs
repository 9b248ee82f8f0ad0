//! `ostler service start` and `ostler service ensure`.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;
use ostler_server::wire::{EnsuredBody, ServiceStartBody};

use super::answer::{How, awaited, left, refused};
use super::args::ServiceArgs;
use super::ask::{Desk, approved, desk};
use super::board::{Board, Row};
use super::up;
use super::waiting::{Interrupt, Over, START_GRACE, WaitArgs, watched};
use crate::client::Body;
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// What `start` takes.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// What to call it; its framework's or program's name unless given
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    /// Everything known of it, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: ServiceArgs,
    /// The program and its arguments; one word with blanks is a line for sh
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `ensure` takes.
#[derive(Debug, Args)]
pub(crate) struct EnsureArgs {
    /// What it is called; alone, it is one that is defined
    #[arg(value_name = "NAME", required_unless_present = "command")]
    name: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    /// Everything known of it, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: ServiceArgs,
    /// After --: the program and its arguments; one word with blanks is a line for sh
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Starts a service.
///
/// # Errors
/// When it cannot be started or waited for.
pub(super) fn start(setup: &Setup, args: StartArgs) -> Outcome {
    let (wait, json) = (args.wait, args.json);
    let body = args.service.body(setup, args.name, args.command)?;
    begin(setup, ("/api/v1/services", body), wait, json)
}

/// Reuses a service, or starts it.
///
/// # Errors
/// When it cannot be started or waited for.
pub(super) fn ensure(setup: &Setup, args: EnsureArgs) -> Outcome {
    let (wait, json) = (args.wait, args.json);
    if args.command.is_empty() {
        let name = args.name.unwrap_or_default();
        return up::ensure(setup, name, wait, json);
    }
    let body = args.service.body(setup, args.name, args.command)?;
    begin(setup, ("/api/v1/services/ensure", body), wait, json)
}

fn begin(
    setup: &Setup,
    (path, body): (&'static str, ServiceStartBody),
    wait: WaitArgs,
    json: bool,
) -> Outcome {
    let desk = desk(setup, None)?;
    let mut board = Board::new(setup, json);
    block_on(async {
        let mut interrupt = Interrupt::catch()?;
        let asked = ask(&desk, path, &body);
        let nothing = || async { Vec::<Row>::new() };
        let seats = (&mut board, &mut interrupt);
        let ensured = match watched(asked, seats, START_GRACE, nothing).await? {
            Over::Done(ensured) => ensured,
            Over::Interrupted(late) => return Ok(left(late.as_slice())),
        };
        let how = How { json, single: true };
        awaited(
            &desk.client,
            vec![ensured],
            wait,
            how,
            (&mut board, &mut interrupt),
        )
        .await
    })
}

async fn ask(
    desk: &Desk,
    path: &str,
    body: &ServiceStartBody,
) -> Result<EnsuredBody, CommandError> {
    let command = body.start.command.display();
    let asked = approved(&desk.client, &command, |approval| async move {
        let mut body = body.clone();
        body.start.approval = approval.or(body.start.approval);
        desk.client
            .call_repeatable(Method::POST, path, Body::json(&body)?)
            .await
    });
    asked.await.map_err(refused)
}
