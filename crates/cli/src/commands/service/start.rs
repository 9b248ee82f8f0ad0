//! `ostler service start` and `ostler service ensure`.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;
use ostler_api::{EnsureResponse, ServiceStartBody, UpResponse};

use super::args::ServiceArgs;
use super::client::{ServiceClient, service_client, with_approval};
use super::print::{OutputMode, WaitUi, not_started_error, report_interrupted, wait_and_print};
use super::progress::{ProgressLines, ProgressRow};
use super::up;
use super::wait::{Interrupt, ReadyWaitArgs, START_GRACE, WorkOutcome, run_with_progress};
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// What `start` takes.
#[derive(Debug, Args)]
pub(crate) struct ServiceStartArgs {
    /// What to call it; its framework's or program's name unless given
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    wait: ReadyWaitArgs,
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
    wait: ReadyWaitArgs,
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
pub(super) fn start(context: &CliContext, args: ServiceStartArgs) -> CommandResult {
    let (wait, json) = (args.wait, args.json);
    let body = args.service.into_body(context, args.name, args.command)?;
    start_service(context, "/api/v1/services", body, wait, json)
}

/// Reuses a running service, or starts it.
///
/// # Errors
/// When it cannot be started or waited for.
pub(super) fn ensure(context: &CliContext, args: EnsureArgs) -> CommandResult {
    let (wait, json) = (args.wait, args.json);
    if args.command.is_empty() {
        let name = args.name.unwrap_or_default();
        return up::ensure(context, name, wait, json);
    }
    let body = args.service.into_body(context, args.name, args.command)?;
    start_service(context, "/api/v1/services/ensure", body, wait, json)
}

fn start_service(
    context: &CliContext,
    path: &str,
    body: ServiceStartBody,
    wait: ReadyWaitArgs,
    json: bool,
) -> CommandResult {
    let client = service_client(context, None)?;
    let mut progress = ProgressLines::new(context, json);
    block_on(async {
        let mut interrupt = Interrupt::install()?;
        let request = request_start(&client, path, &body);
        let no_rows = || async { Vec::<ProgressRow>::new() };
        let ensured =
            match run_with_progress(request, &mut progress, &mut interrupt, START_GRACE, no_rows)
                .await?
            {
                WorkOutcome::Finished(ensured) => ensured,
                WorkOutcome::Interrupted(finished) => {
                    return Ok(report_interrupted(finished.as_slice()));
                }
            };
        let mode = OutputMode { json, single: true };
        wait_and_print(
            &client.daemon,
            UpResponse::from(ensured),
            wait,
            mode,
            WaitUi {
                progress: &mut progress,
                interrupt: &mut interrupt,
            },
        )
        .await
    })
}

async fn request_start(
    client: &ServiceClient,
    path: &str,
    body: &ServiceStartBody,
) -> Result<EnsureResponse, CommandError> {
    let command = body.start.command.display();
    let response = with_approval(&client.daemon, &command, |approval| async move {
        let mut body = body.clone();
        body.start.options.approval = approval.or(body.start.options.approval);
        client
            .daemon
            .call_idempotent(Method::POST, path, RequestBody::json(&body)?)
            .await
    });
    response.await.map_err(not_started_error)
}
