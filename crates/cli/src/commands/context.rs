//! `ostler context`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use ostler_api::{ContextBody, ContextRequestBody, ContextsBody};
use ostler_model::duration::{self, as_millis};
use ostler_model::{ByteString, Command, ContextId, ErrorCode, StartOptions, Timestamp, visible};

use super::isolation_args::IsolationArgs;
use super::run::{RunFlags, StartSource, run_command};
use super::start::{parse_variables, resolve_directory};
use super::value_parsers;
use crate::batch::BatchExit;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, StyledLine, TextTable, cells, format_age, print_json};

const CONTEXTS: &str = "/api/v1/contexts";

/// The verbs of `context`.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// Print the context of a project: the one there is, or a new one
    Create(Box<ContextCreateArgs>),
    /// List the contexts there are
    List(ContextListArgs),
    /// Show a context
    Show(ContextShowArgs),
    /// Run a command in a context, as `run` does
    Run(Box<ContextRunArgs>),
    /// End contexts, and remove the directories that were created for them
    Rm(ContextRmArgs),
}

/// What `context create` takes.
#[derive(Debug, Args)]
pub(crate) struct ContextCreateArgs {
    /// The project: a name, or the directory that it is; here unless given
    #[arg(value_name = "PROJECT")]
    project: Option<String>,
    /// The task, for the variable CLAUDE_TASK_ID
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The directory its commands work in; unless given, that of the project, or a new one, which
    /// is removed with the context
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Set a variable for its commands, or pass ours on where only its name is given
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// End each of its commands after this long, for example 90 or 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    timeout: Option<Duration>,
    /// End it after this long without use
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    idle_timeout: Option<Duration>,
    /// Everything known of it, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// What `context list` takes.
#[derive(Debug, Args)]
pub(crate) struct ContextListArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `context show` takes.
#[derive(Debug, Args)]
pub(crate) struct ContextShowArgs {
    /// Which
    #[arg(value_name = "ID")]
    id: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `context run` takes.
#[derive(Debug, Args)]
pub(crate) struct ContextRunArgs {
    #[command(flatten)]
    flags: RunFlags,
    /// The context; the command works in its directory unless --cwd names one below
    #[arg(value_name = "ID")]
    id: String,
    /// The program and its arguments; no shell sees them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `context rm` takes.
#[derive(Debug, Args)]
pub(crate) struct ContextRmArgs {
    /// Which
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Stop what runs in it first, and discard what undecided overlays of it hold
    #[arg(short, long)]
    force: bool,
}

/// Runs the verb.
///
/// # Errors
/// When there is no such context, or the daemon refuses.
pub(crate) fn run(context: &CliContext, verb: ContextVerb) -> CommandResult {
    match verb {
        ContextVerb::Create(args) => create(context, *args),
        ContextVerb::List(args) => block_on(list(&context.client(), &args)),
        ContextVerb::Show(args) => block_on(show(&context.client(), &args)),
        ContextVerb::Run(args) => run_in(context, *args),
        ContextVerb::Rm(args) => block_on(remove(&context.client(), &args)),
    }
}

fn create(context: &CliContext, args: ContextCreateArgs) -> CommandResult {
    let project = project_name(args.project)?;
    let options = StartOptions {
        set_env: parse_variables(context, args.env)?,
        timeout: args.timeout,
        ..args.isolation.into_options(&context.config)?
    };
    if options.approval.is_some() {
        return Err(CommandError::value(
            "--approval: an approval is for one command, not for a context",
        ));
    }
    let body = ContextRequestBody {
        project,
        task: args.task,
        cwd: args
            .cwd
            .map(|cwd| resolve_directory(Some(cwd)))
            .transpose()?,
        idle_timeout_ms: args.idle_timeout.map(as_millis),
        options,
    };
    let request = RequestBody::json(&body)?;
    let client = context.client();
    let body: ContextBody = block_on(client.call_idempotent(Method::POST, CONTEXTS, request))?;
    if args.json {
        print_json(&body)?;
        return Ok(0);
    }
    print_lines([body.id.to_string()])
}

/// A name, or the absolute path of a directory: of this one, or of the one that is named.
///
/// # Errors
/// When the directory does not exist.
pub(crate) fn project_name(given: Option<String>) -> Result<String, CommandError> {
    let is_path = |name: &String| name.contains('/') || name == "." || name == "..";
    let path = match given {
        Some(name) if !is_path(&name) => return Ok(name),
        Some(path) => path,
        None => ".".to_owned(),
    };
    let absolute = std::fs::canonicalize(&path);
    let absolute = absolute
        .map_err(|error| CommandError::value(format!("project '{}': {error}", visible(&path))))?;
    Ok(absolute.to_string_lossy().into_owned())
}

async fn list(client: &DaemonClient, args: &ContextListArgs) -> CommandResult {
    let body: ContextsBody = client
        .call(Method::GET, CONTEXTS, RequestBody::None)
        .await?;
    if args.json {
        print_json(&body.contexts)?;
        return Ok(0);
    }
    let now = Timestamp::now();
    let mut table = TextTable::new(&["ID", "PROJECT", "STATUS", "USED", "DIRECTORY"]);
    for context in &body.contexts {
        table.push_row(cells![
            context.id.to_string(),
            StyledLine::from(&context.project),
            status(context),
            format_age(context.used_at, now),
            context.directory.to_string(),
        ]);
    }
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}

async fn show(client: &DaemonClient, args: &ContextShowArgs) -> CommandResult {
    let body = find(client, &args.id).await?;
    if args.json {
        print_json(&body)?;
        return Ok(0);
    }
    print_lines(
        fields(&body)
            .into_iter()
            .map(|(name, value)| format!("{name:13}{value}")),
    )
}

async fn find(client: &DaemonClient, id: &str) -> Result<ContextBody, CommandError> {
    let path = path_of(id)?;
    client.call(Method::GET, &path, RequestBody::None).await
}

/// The path of a context. What is no id names no context: it is not sent.
fn path_of(id: &str) -> Result<String, CommandError> {
    let id: ContextId = id.parse().map_err(|error: ostler_model::ContextIdError| {
        CommandError::new(ErrorCode::Value, error.to_string())
            .with_hint("`ostler context list` shows which there are")
    })?;
    Ok(format!("{CONTEXTS}/{id}"))
}

/// For example `busy (2)`.
fn status(context: &ContextBody) -> String {
    match context.executions.len() {
        0 => context.status.clone(),
        count => format!("{} ({count})", context.status),
    }
}

/// The lines for people: name and value.
fn fields(context: &ContextBody) -> Vec<(&'static str, String)> {
    let now = Timestamp::now();
    let span = |millis| duration::compact(Duration::from_millis(millis));
    let created = if context.directory_created {
        "created for it, removed with it"
    } else {
        "stays when it ends"
    };
    let limits = &context.limits;
    let bytes = |limit: Option<u64>| limit.map(|bytes| format!("{bytes} bytes"));
    let cpu = limits
        .cpu_millis
        .map(|cpu| format!("{cpu} thousandths of a core"));
    let names = |names: Vec<String>| (!names.is_empty()).then(|| names.join(", "));
    let variables = context.variables.iter().map(ToString::to_string).collect();
    let optional = [
        ("task", context.task.clone()),
        ("session", context.session.clone()),
        ("problem", context.problem.clone()),
        ("executions", names(context.executions.clone())),
        ("variables", names(variables)),
        ("secrets", names(context.secrets.clone())),
        (
            "isolation",
            context.isolation.map(|level| level.to_string()),
        ),
        ("memory", bytes(limits.memory_bytes)),
        ("processor", cpu),
        ("disk", bytes(limits.disk_bytes)),
        (
            "ends",
            context
                .ends_at
                .map(|at| format!("in {}", duration::compact(duration::between(now, at)))),
        ),
    ];
    let mut fields = vec![
        ("id", context.id.to_string()),
        ("project", context.project.clone()),
        ("status", status(context)),
        ("directory", format!("{} ({created})", context.directory)),
        ("created", format_age(context.created_at, now)),
        ("used", format_age(context.used_at, now)),
        ("time limit", span(context.timeout_ms)),
        ("idle limit", span(context.idle_timeout_ms)),
    ];
    let optional = optional.into_iter();
    fields.extend(optional.filter_map(|(name, value)| Some((name, value?))));
    fields
}

fn print_lines(lines: impl IntoIterator<Item = String>) -> CommandResult {
    let mut out = StdoutWriter::new();
    for line in lines {
        out.write_line(line)?;
    }
    out.flush()?;
    Ok(0)
}

fn run_in(context: &CliContext, args: ContextRunArgs) -> CommandResult {
    let mut flags = args.flags;
    let found = block_on(find(&context.client(), &args.id))?;
    flags
        .common
        .cwd
        .get_or_insert_with(|| found.directory.as_path().to_owned());
    let mut words = args.command.into_iter().map(ByteString::from);
    let program = words.next().unwrap_or_default();
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    let source = StartSource {
        context: Some(found.id),
        ..StartSource::default()
    };
    run_command(context, flags, command, source)
}

async fn remove(client: &DaemonClient, args: &ContextRmArgs) -> CommandResult {
    let query = if args.force { "?force=true" } else { "" };
    let mut exit = BatchExit::default();
    for id in &args.ids {
        exit.record(remove_one(client, id, query).await)?;
    }
    Ok(exit.code())
}

async fn remove_one(client: &DaemonClient, id: &str, query: &str) -> Result<(), CommandError> {
    let path = path_of(id)?;
    client
        .call_bytes(Method::DELETE, &format!("{path}{query}"), RequestBody::None)
        .await
        .map_err(|error| error.with_subject(id))?;
    print_lines([id.to_owned()]).map(drop)
}
