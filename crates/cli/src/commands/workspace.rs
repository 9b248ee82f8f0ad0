//! `ostler workspace`, `ostler diff`, `ostler commit` and `ostler discard`: what a command
//! wrote to its overlay.

use clap::Args;
use hyper::Method;
use ostler_model::{Changes, Fate};
use ostler_server::render::walls;
use ostler_server::wire::WorkspaceBody;

use super::ids;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// Changes that are listed.
const LISTED: usize = 100_000;
/// Bytes of a diff.
const DIFF_BYTES: usize = 8 * 1024 * 1024;
/// What a commit exits with that put nothing in place, as git does.
const CONFLICT_EXIT: u8 = 1;

/// What `commit` takes.
#[derive(Debug, Args)]
pub(crate) struct CommitArgs {
    #[command(flatten)]
    pub(crate) which: WorkspaceArgs,
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
    paths: Vec<String>,
}

/// Lists what a command changed.
///
/// # Errors
/// When the daemon cannot be asked, or it has no overlay.
pub(crate) fn changes(setup: &Setup, args: &WorkspaceArgs) -> Outcome {
    let path = ids::path(&args.id, &format!("/workspace?limit={LISTED}"));
    ask(setup, args, (Method::GET, path))
}

/// Puts the changes on the host, or lists the conflicts, or what tools run unasked, because of
/// which nothing is there.
///
/// # Errors
/// When the daemon cannot be asked, it still runs, or that was decided before.
pub(crate) fn commit(setup: &Setup, args: &CommitArgs) -> Outcome {
    let allowed = args.allow_autorun;
    let query = format!("/workspace/commit?limit={LISTED}&allow_autorun={allowed}");
    let path = ids::path(&args.which.id, &query);
    ask(setup, &args.which, (Method::POST, path))
}

/// Forgets the changes.
///
/// # Errors
/// As [`commit`].
pub(crate) fn discard(setup: &Setup, args: &WorkspaceArgs) -> Outcome {
    let path = ids::path(&args.id, "/workspace/discard");
    ask(setup, args, (Method::POST, path))
}

/// Prints the changes as a diff that `git apply` takes.
///
/// # Errors
/// As [`changes`].
pub(crate) fn diff(setup: &Setup, args: &DiffArgs) -> Outcome {
    let mut query = format!("/workspace/diff?limit_bytes={DIFF_BYTES}");
    for path in &args.paths {
        let path: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        query.push_str(&format!("&path={path}"));
    }
    let client = setup.client();
    block_on(async {
        let body = call(
            &client,
            &args.id,
            (Method::GET, ids::path(&args.id, &query)),
        )
        .await?;
        let mut out = Out::new();
        out.printed_lines(body.diff.unwrap_or_default().as_bytes())?;
        out.flush()?;
        for told in walls::autorun(&body.autorun) {
            crate::tell(&told);
        }
        if body.truncated {
            let told = CommandError::value("the diff is longer than what is shown; name paths");
            crate::report(&told);
        }
        Ok(0)
    })
}

fn ask(setup: &Setup, args: &WorkspaceArgs, request: (Method, String)) -> Outcome {
    let client = setup.client();
    block_on(async {
        let body = call(&client, &args.id, request).await?;
        let code = if body.conflicts.is_empty() && !body.refused {
            0
        } else {
            CONFLICT_EXIT
        };
        if args.json {
            print_json(&body)?;
        } else {
            print(body)?;
        }
        Ok(code)
    })
}

async fn call(
    client: &Client,
    id: &str,
    (method, path): (Method, String),
) -> Result<WorkspaceBody, CommandError> {
    match client.call(method, &path, Body::None).await {
        Ok(body) => Ok(body),
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}

fn print(body: WorkspaceBody) -> Result<(), CommandError> {
    let mut out = Out::new();
    if !body.conflicts.is_empty() {
        out.line("the workspace changed since the command started; nothing was committed:")?;
        for conflict in &body.conflicts {
            out.line(walls::conflict(conflict))?;
        }
        return out.flush();
    }
    if body.refused {
        out.line("tools run or obey some of it unasked; nothing was committed:")?;
        for told in walls::autorun(&body.autorun) {
            out.line(told)?;
        }
        out.line("--allow-autorun puts it in place all the same")?;
        return out.flush();
    }
    let totals = body.totals;
    let changes = Changes {
        totals: [totals.created, totals.changed, totals.deleted],
        fate: body.fate,
        changes: body.changes,
        autorun: body.autorun,
    };
    let fate = walls::fate(changes.fate);
    match changes.fate {
        Fate::Open | Fate::Committed => {
            for line in format!("{fate}: {}", walls::changes(&changes, LISTED)).lines() {
                out.line(line)?;
            }
        }
        Fate::Discarded => out.line(fate)?,
    }
    for told in walls::autorun(&changes.autorun) {
        out.line(told)?;
    }
    out.flush()
}
