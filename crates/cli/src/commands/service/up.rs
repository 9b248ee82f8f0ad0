//! `ostler service up`: starts the services that `ostler.toml` and the API define.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use ostler_api::{ServiceBody, UpBody, UpResponse};
use ostler_model::{ErrorCode, IsolationLevel};

use super::client::{API_DEFINITION, Candidates, ServiceClient, service_client, with_approval};
use super::manifest::check_manifest_exists;
use super::print::{OutputMode, WaitUi, not_started_error, report_interrupted, wait_and_print};
use super::progress::{ProgressLines, ProgressRow};
use super::wait::{Interrupt, ReadyWaitArgs, START_GRACE, WorkOutcome, run_with_progress};
use crate::client::RequestBody;
use crate::commands::value_parsers;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::paths::home;

/// What `up` takes.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Only these, with what they depend on
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    wait: ReadyWaitArgs,
    /// Where ostler.toml is looked for, upwards; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The isolation level of those whose definition does not say: basic, medium, high, container
    #[arg(long, value_name = "LEVEL", value_parser = value_parsers::ISOLATION_LEVEL, hide_possible_values = true)]
    isolation: Option<IsolationLevel>,
    /// Everything known of them, as JSON
    #[arg(long)]
    json: bool,
}

/// Starts the services.
///
/// # Errors
/// When nothing is defined, or a service cannot be started or waited for.
pub(super) fn run(context: &CliContext, args: UpArgs) -> CommandResult {
    let mode = OutputMode {
        json: args.json,
        single: false,
    };
    let client = service_client(context, args.cwd)?;
    let mut body = up_body(context, &client, args.names);
    body.isolation = args.isolation.or(body.isolation);
    bring_up(context, client, body, args.wait, mode)
}

/// Starts one that is defined.
///
/// # Errors
/// As [`run`].
pub(super) fn ensure(
    context: &CliContext,
    name: String,
    wait: ReadyWaitArgs,
    json: bool,
) -> CommandResult {
    let client = service_client(context, None)?;
    let body = up_body(context, &client, vec![name]);
    bring_up(
        context,
        client,
        body,
        wait,
        OutputMode {
            json,
            single: false,
        },
    )
}

fn up_body(context: &CliContext, client: &ServiceClient, names: Vec<String>) -> UpBody {
    let policy = context.config.client_policy();
    UpBody {
        cwd: client.cwd.clone(),
        names,
        base_env: context.env.to_texts(),
        isolation: policy.isolation,
        allowed: policy.allowed_commands,
        cli: true,
        ..UpBody::default()
    }
}

fn bring_up(
    context: &CliContext,
    client: ServiceClient,
    body: UpBody,
    wait: ReadyWaitArgs,
    mode: OutputMode,
) -> CommandResult {
    let mut progress = ProgressLines::new(context, mode.json);
    block_on(async {
        if body.names.is_empty() {
            check_manifest_exists(client.cwd.as_path(), &home(&context.env))?;
        }
        let mut interrupt = Interrupt::install()?;
        let names: HashSet<&str> = body.names.iter().map(String::as_str).collect();
        let fetch_rows = || fetch_rows(&client, &names);
        let request = request_up(&client, &body);
        let result = match run_with_progress(
            request,
            &mut progress,
            &mut interrupt,
            START_GRACE,
            fetch_rows,
        )
        .await?
        {
            WorkOutcome::Finished(result) => result,
            WorkOutcome::Interrupted(late) => {
                let finished = late.map(|upped| upped.services).unwrap_or_default();
                return Ok(report_interrupted(&finished));
            }
        };
        let count = result.services.len() + result.failures.len();
        let mode = OutputMode {
            single: mode.single || count == 1,
            ..mode
        };
        wait_and_print(
            &client.daemon,
            result,
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

async fn request_up(client: &ServiceClient, body: &UpBody) -> Result<UpResponse, CommandError> {
    let command = format!("service up {}", body.names.join(" "));
    let response = with_approval(&client.daemon, &command, |approval| async move {
        let body = UpBody {
            approval,
            ..body.clone()
        };
        let body = RequestBody::json(&body)?;
        client
            .daemon
            // What runs is not started again.
            .call_idempotent(Method::POST, "/api/v1/services/up", body)
            .await
    });
    match response.await {
        Err(error) if error.code() == Some(ErrorCode::ProcessNotFound) => {
            let names: Vec<&str> = body.names.iter().map(String::as_str).collect();
            client
                .with_suggestion(&names, Candidates::Defined, Err(error))
                .await
        }
        result => result.map_err(not_started_error),
    }
}

/// The `ostler.toml` that defines a service of this name, or that it was started from.
pub(super) fn manifest_of(service: &ServiceBody) -> Option<&str> {
    let sources = [&service.definition, &service.defined_in];
    let mut files = sources.into_iter().filter_map(|it| it.as_deref());
    files.find(|source| *source != API_DEFINITION)
}

/// The progress rows of the services that are being started: these, or all that the workspace's
/// `ostler.toml` defines.
async fn fetch_rows(client: &ServiceClient, names: &HashSet<&str>) -> Vec<ProgressRow> {
    let list = client.list_all().await.unwrap_or_default();
    let is_named = |service: &&ServiceBody| {
        if names.is_empty() {
            service
                .definition
                .as_deref()
                .is_some_and(|it| it != API_DEFINITION)
        } else {
            names.contains(service.name.as_str())
        }
    };
    list.iter()
        .filter(is_named)
        .map(ProgressRow::from_service)
        .collect()
}
