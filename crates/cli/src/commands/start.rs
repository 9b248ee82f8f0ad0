//! Starting an execution: arguments and requests shared by all verbs that start one.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_api::{ExecutionBody, QueuedStartBody, StartBody};
use ostler_model::{
    AlertThresholds, ByteString, ErrorCode, ExecutionId, IsolationLevel, StartOptions,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::approve;
use super::isolation_args::IsolationArgs;
use super::value_parsers;
use crate::client::{DaemonClient, RequestBody};
use crate::context::CliContext;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

/// The interval at which a pending start is checked for being queued, in milliseconds.
const QUEUE_POLL_MS: u64 = 500;
/// The most executions that are named to a user whose start is queued.
const MAX_HOLDERS: usize = 5;
/// The exit code of a shell if a program was not found.
const EXIT_NOT_FOUND: u8 = 127;
/// The exit code of a shell if a program could not be executed.
const EXIT_NOT_EXECUTABLE: u8 = 126;

/// What every verb takes that starts something.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Working directory; here unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set a variable, or pass ours on where only its name is given
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// Start with the few variables agents' commands start with, and those of --env, instead
    /// of all of yours
    #[arg(long)]
    pub(crate) clean_env: bool,
    /// A label to find it by; repeatable
    #[arg(short, long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Record what it is given as input, for logs --stream stdin; never what is typed while its
    /// terminal has echo off, as for a password, and no secret
    #[arg(long)]
    pub(crate) record_input: bool,
    /// Tell when it uses that much (cpu=80%, memory=400M, disk=1G), runs (run=10m) or neither
    /// prints nor works (idle=5m) for so long, in events, the log and the webhook; repeatable
    #[arg(long, value_name = "KIND=AMOUNT", value_parser = value_parsers::alert)]
    pub(crate) alert: Vec<AlertThresholds>,
    /// What to call it, for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) description: String,
}

impl CommonArgs {
    /// The options of the start, with those of the isolation flags.
    ///
    /// # Errors
    /// For a variable that does not exist, and as [`IsolationArgs::into_options`].
    pub(crate) fn into_options(
        self,
        context: &CliContext,
        isolation: IsolationArgs,
    ) -> Result<StartOptions, CommandError> {
        let isolation = isolation.into_options(&context.config)?;
        let in_container = isolation.level == Some(IsolationLevel::Container);
        Ok(StartOptions {
            set_env: parse_variables(context, self.env)?,
            inherit_env: (!in_container).then(|| inherits_env(context, self.clean_env)),
            labels: self.label,
            record_input: self.record_input,
            alerts: self
                .alert
                .into_iter()
                .rev()
                .fold(AlertThresholds::default(), AlertThresholds::or),
            description: self.description,
            allowed: context.config.client_policy().allowed_commands,
            ..isolation
        })
    }
}

/// Whether the command gets the whole environment of this process: by default for commands of a
/// person, unless the flag or a setting says otherwise.
fn inherits_env(context: &CliContext, clean_env: bool) -> bool {
    !clean_env && context.config.inherits_at_prompt()
}

/// Sends the start.
///
/// # Errors
/// As the daemon responds; a program that cannot run exits as it would in a shell.
pub(crate) async fn start(
    client: &DaemonClient,
    body: &StartBody,
) -> Result<ExecutionBody, CommandError> {
    let error = match post_start(client, body).await {
        Err(error) if error.approval().is_some() => error,
        result => return result.map_err(with_shell_exit_code),
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let reason = error.message().unwrap_or_default();
    let command = body.command.display();
    if approve::ask_at_terminal(client, &id, &command, reason).await? != Some(true) {
        return Err(error);
    }
    let mut body = body.clone();
    body.options.approval = Some(id);
    post_start(client, &body)
        .await
        .map_err(with_shell_exit_code)
}

/// Sends the request. The body has an id, so the start can be repeated.
async fn post_start(
    client: &DaemonClient,
    body: &StartBody,
) -> Result<ExecutionBody, CommandError> {
    let request = RequestBody::json(body)?;
    let response = client.call_idempotent(Method::POST, "/api/v1/executions", request);
    with_queue_notice(client, body.id, response).await
}

/// Awaits a start, and reports once if it is queued.
///
/// # Errors
/// The errors of the start.
pub(crate) async fn with_queue_notice(
    client: &DaemonClient,
    id: Option<ExecutionId>,
    response: impl Future<Output = Result<ExecutionBody, CommandError>>,
) -> Result<ExecutionBody, CommandError> {
    let Some(id) = id else {
        return response.await;
    };
    let info = tokio::select! {
        biased;
        started = response => started?,
        unreachable = report_queue(client, id) => match unreachable {},
    };
    if let Some(queued) = &info.queued {
        crate::print_note(&format!("{}: {queued}", info.id));
    }
    Ok(info)
}

/// Reports that the start with this id is queued, once it is.
async fn report_queue(client: &DaemonClient, id: ExecutionId) -> Infallible {
    let path = format!("/api/v1/starts/{id}");
    let period = Duration::from_millis(QUEUE_POLL_MS);
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let response = client.call::<QueuedStartBody>(Method::GET, &path, RequestBody::None);
        if let Ok(queued) = response.await {
            crate::print_note(&describe_queue(&queued));
            return std::future::pending().await;
        }
    }
}

fn describe_queue(queued: &QueuedStartBody) -> String {
    let QueuedStartBody {
        ahead,
        running,
        limit,
        holders,
    } = queued;
    let shown: Vec<String> = holders
        .iter()
        .take(MAX_HOLDERS)
        .map(|it| format!("{} ({})", it.id, it.command))
        .collect();
    let more = match running.saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let queue = match ahead {
        0 => String::new(),
        1 => ", one start before it".to_owned(),
        many => format!(", {many} starts before it"),
    };
    format!(
        "waiting for one of {limit} places{queue}; they are held by {}{more}",
        shown.join(", ")
    )
}

/// Sets the exit code that a shell would have for a program that cannot run.
pub(crate) fn with_shell_exit_code(error: CommandError) -> CommandError {
    match error.code() {
        Some(ErrorCode::CommandExecution) if !error.is_spawn_failure() => {
            error.with_exit(EXIT_NOT_FOUND)
        }
        Some(ErrorCode::CommandExecution | ErrorCode::Permission) => {
            error.with_exit(EXIT_NOT_EXECUTABLE)
        }
        Some(_) | None => error,
    }
}

/// Prints what was started.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print_started(info: &ExecutionBody, json: bool) -> CommandResult {
    if json {
        print_json(info)?;
    } else {
        let mut out = StdoutWriter::new();
        out.write_line(&info.id)?;
        out.flush()?;
    }
    Ok(0)
}

/// The requested working directory, or that of this process.
///
/// # Errors
/// When it is relative and the working directory was removed.
pub(crate) fn resolve_directory(directory: Option<PathBuf>) -> Result<ByteString, CommandError> {
    if let Some(path) = directory.as_ref().filter(|path| path.is_absolute()) {
        return Ok(ByteString::from(path.clone()));
    }
    let cwd = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the working directory is gone: {error}"),
        )
    })?;
    Ok(ByteString::from(
        directory.map_or(cwd.clone(), |path| cwd.join(path)),
    ))
}

/// Parses variables given with --env.
///
/// # Errors
/// When a name is empty, or not a variable of this process.
pub(crate) fn parse_variables(
    context: &CliContext,
    pairs: Vec<OsString>,
) -> Result<Vec<(ByteString, ByteString)>, CommandError> {
    pairs
        .into_iter()
        .map(|pair| parse_variable(context, pair))
        .collect()
}

fn parse_variable(
    context: &CliContext,
    pair: OsString,
) -> Result<(ByteString, ByteString), CommandError> {
    let bytes = ByteString::from(pair).into_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=');
    let (name, value) = match equals {
        Some(0) => return Err(CommandError::value("--env: the name is empty")),
        Some(at) => (&bytes[..at], Some(ByteString::from(&bytes[at + 1..]))),
        None => (&bytes[..], None),
    };
    let inherited = || {
        let name = std::str::from_utf8(name).ok()?;
        context
            .env
            .exact(name)
            .map(|value| ByteString::from(value.to_owned()))
    };
    let value = value.or_else(inherited).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        CommandError::value(format!("--env {name}: there is no such variable here"))
            .with_hint("write --env NAME=VALUE")
    })?;
    Ok((ByteString::from(name), value))
}
