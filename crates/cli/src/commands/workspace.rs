//! `ostler workspace`, `ostler diff`, `ostler commit` and `ostler discard`: the overlay of a
//! command.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;
use ostler_api::WorkspaceBody;
use ostler_model::{ByteString, OverlayChanges, OverlayOutcome};
use ostler_render::isolation;

use super::ids;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, print_json};

/// The most changes that are listed.
const MAX_CHANGES: usize = 100_000;
/// The most bytes of a diff.
const DIFF_BYTES: usize = 8 * 1024 * 1024;
/// The exit code of a commit with conflicts, as git has it.
const CONFLICT_EXIT: u8 = 1;

/// What `commit` takes.
#[derive(Debug, Args)]
pub(crate) struct CommitArgs {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArgs,
    /// Also what tools run or obey unasked: hooks, configuration of git, tasks of editors
    #[arg(long)]
    allow_autorun: bool,
}

/// What `workspace`, `commit` and `discard` take.
#[derive(Debug, Args)]
pub(crate) struct WorkspaceArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// As one JSON document
    #[arg(long)]
    json: bool,
}

/// What `diff` takes.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only these files and what is below them
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
}

/// Lists the changes of a command.
///
/// # Errors
/// When the daemon cannot be reached, or the execution has no overlay.
pub(crate) fn changes(context: &CliContext, args: &WorkspaceArgs) -> CommandResult {
    let path = ids::path(&args.id, &format!("/workspace?limit={MAX_CHANGES}"));
    run_request(context, args, Method::GET, path)
}

/// Commits the changes to the host, or lists the conflicts or autorun files because of which
/// nothing was committed.
///
/// # Errors
/// When the daemon cannot be reached, the command still runs, or the decision was made before.
pub(crate) fn commit(context: &CliContext, args: &CommitArgs) -> CommandResult {
    let allowed = args.allow_autorun;
    let query = format!("/workspace/commit?limit={MAX_CHANGES}&allow_autorun={allowed}");
    let path = ids::path(&args.workspace.id, &query);
    run_request(context, &args.workspace, Method::POST, path)
}

/// Discards the changes.
///
/// # Errors
/// As [`commit`].
pub(crate) fn discard(context: &CliContext, args: &WorkspaceArgs) -> CommandResult {
    let path = ids::path(&args.id, "/workspace/discard");
    run_request(context, args, Method::POST, path)
}

/// Prints the changes as a diff that `git apply` accepts.
///
/// # Errors
/// As [`changes`].
pub(crate) fn diff(context: &CliContext, args: &DiffArgs) -> CommandResult {
    let mut query = format!("/workspace/diff?limit_bytes={DIFF_BYTES}");
    for path in &args.paths {
        query.push('&');
        query.push_str(&path_parameter(path.clone()));
    }
    let client = context.client();
    block_on(async {
        let body =
            call_workspace(&client, &args.id, Method::GET, ids::path(&args.id, &query)).await?;
        let mut out = StdoutWriter::new();
        out.output_lines(body.diff.unwrap_or_default().as_bytes())?;
        out.flush()?;
        let mut notes = isolation::describe_autorun(&body.autorun);
        notes.extend(isolation::describe_host_changes(
            &body.changed_on_host,
            MAX_CHANGES,
        ));
        for line in notes {
            crate::print_note(&line);
        }
        if body.truncated {
            let error = CommandError::value("the diff is longer than what is shown; name paths");
            crate::print_error(&error);
        }
        Ok(0)
    })
}

/// One path as a parameter of the query string, which is UTF-8.
fn path_parameter(path: OsString) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    match path.into_string() {
        Ok(text) => query.append_pair("path", &text),
        Err(path) => query.append_pair("path_base64", &ByteString::from(path).to_base64()),
    };
    query.finish()
}

fn run_request(
    context: &CliContext,
    args: &WorkspaceArgs,
    method: Method,
    path: String,
) -> CommandResult {
    let client = context.client();
    block_on(async {
        let body = call_workspace(&client, &args.id, method, path).await?;
        let code = if body.conflicts.is_empty() && !body.refused {
            0
        } else {
            CONFLICT_EXIT
        };
        if args.json {
            print_json(&body)?;
        } else {
            print_changes(body)?;
        }
        Ok(code)
    })
}

async fn call_workspace(
    client: &DaemonClient,
    id: &str,
    method: Method,
    path: String,
) -> Result<WorkspaceBody, CommandError> {
    match client.call(method, &path, RequestBody::None).await {
        Ok(body) => Ok(body),
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}

fn print_changes(body: WorkspaceBody) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if !body.conflicts.is_empty() {
        out.write_line("the workspace changed since the command started; nothing was committed:")?;
        for conflict in &body.conflicts {
            out.write_line(isolation::describe_conflict(conflict))?;
        }
        return out.flush();
    }
    if body.refused {
        out.write_line("tools run or obey some of it unasked; nothing was committed:")?;
        for line in isolation::describe_autorun(&body.autorun) {
            out.write_line(line)?;
        }
        out.write_line("--allow-autorun puts it in place all the same")?;
        return out.flush();
    }
    let totals = body.totals;
    let changes = OverlayChanges {
        totals: [totals.created, totals.changed, totals.deleted],
        fate: body.fate,
        changes: body.changes,
        autorun: body.autorun,
        changed_on_host: body.changed_on_host,
    };
    let outcome = isolation::outcome_word(changes.fate);
    match changes.fate {
        OverlayOutcome::Open | OverlayOutcome::Committed => {
            for line in format!(
                "{outcome}: {}",
                isolation::describe_changes(&changes, MAX_CHANGES)
            )
            .lines()
            {
                out.write_line(line)?;
            }
        }
        OverlayOutcome::Discarded => out.write_line(outcome)?,
    }
    let mut lines = isolation::describe_autorun(&changes.autorun);
    lines.extend(isolation::describe_host_changes(
        &changes.changed_on_host,
        MAX_CHANGES,
    ));
    for line in lines {
        out.write_line(line)?;
    }
    out.flush()
}
