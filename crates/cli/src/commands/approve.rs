//! `ostler approve` and `ostler approvals`: a person's decision on commands the policy holds back.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};

use clap::Args;
use hyper::Method;
use ostler_api::{AnswerBody, InteractionBody, InteractionsBody};
use ostler_model::Timestamp;

use crate::batch::BatchExit;
use crate::client::{DaemonClient, RequestBody};
use crate::commands::ps::note_more_results;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::ids::name_subject;
use crate::output::{self, StdoutWriter, StyledLine, TextTable, cells, format_age, print_json};

/// What `approve` takes.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Which, as `ostler approvals` lists them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Say no instead
    #[arg(long)]
    deny: bool,
}

/// What `approvals` takes.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// At most so many open questions are looked through
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Records the decision on each approval; continues after an error, and returns the first error's
/// exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(context: &CliContext, args: &ApproveArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let mut exit = BatchExit::default();
        for id in &args.ids {
            let decided = decide(&client, id, args.deny).await;
            exit.record(decided.map_err(|error| name_subject(error, id, &args.ids)))?;
        }
        Ok(exit.code())
    })
}

/// Records the decision on one approval, and prints it.
async fn decide(client: &DaemonClient, id: &str, deny: bool) -> Result<(), CommandError> {
    let answered = answer(client, id, !deny).await?;
    let verb = if deny { "denied" } else { "approved" };
    let command = answered.approval.map_or(answered.message, |it| it.command);
    let mut out = StdoutWriter::new();
    out.write_line(format!("{id} {verb}: {command}"))?;
    out.flush()
}

/// Approves or denies one.
async fn answer(
    client: &DaemonClient,
    id: &str,
    yes: bool,
) -> Result<InteractionBody, CommandError> {
    let value = if yes { "yes" } else { "no" }.to_owned();
    let encoded: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let path = format!("/api/v1/interactions/{encoded}/answer");
    let body = RequestBody::json(&AnswerBody { value })?;
    client.call(Method::POST, &path, body).await
}

/// Lists the open approvals.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn list(context: &CliContext, args: &ApprovalsArgs) -> CommandResult {
    let client = context.client();
    let limit = args.limit.map(|limit| format!("?limit={limit}"));
    let path = format!("/api/v1/interactions{}", limit.unwrap_or_default());
    let list: InteractionsBody = block_on(client.call(Method::GET, &path, RequestBody::None))?;
    let scanned = list.interactions.len();
    let has_approval = |it: &InteractionBody| it.approval.is_some();
    let open: Vec<InteractionBody> = list.interactions.into_iter().filter(has_approval).collect();
    note_more_results(scanned, list.total, list.next.as_deref());
    if args.json {
        print_json(&open)?;
        return Ok(0);
    }
    let mut table = TextTable::new(&["ID", "ASKED", "RULE", "COMMAND"]);
    for interaction in open {
        let Some(approval) = interaction.approval else {
            continue;
        };
        table.push_row(cells![
            interaction.id,
            format_age(interaction.created_at, Timestamp::now()),
            approval.rule,
            approval.command,
        ]);
    }
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}

/// Prompts the user at the terminal, if there is one; none where there is no terminal.
///
/// # Errors
/// When the daemon does not accept the decision.
pub(crate) async fn ask_at_terminal(
    client: &DaemonClient,
    id: &str,
    command: &str,
    reason: &str,
) -> Result<Option<bool>, CommandError> {
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    let reason = StyledLine::from(format!("ostler: {reason}"));
    let question = format!("run {command}? [y/N] ");
    let prompt = tokio::task::spawn_blocking(move || read_answer(&terminal, reason, &question));
    let yes = tokio::select! {
        answered = prompt => answered.ok().and_then(Result::ok).unwrap_or(false),
        _interrupted = tokio::signal::ctrl_c() => false,
    };
    answer(client, id, yes).await?;
    Ok(Some(yes))
}

fn read_answer(terminal: &File, reason: StyledLine, question: &str) -> std::io::Result<bool> {
    output::print_prompt(terminal, &[reason], question)?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
