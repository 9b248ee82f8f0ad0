//! `ostler approve` and `ostler approvals`: a person's word on commands the policy asks about.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};

use clap::Args;
use hyper::Method;
use ostler_model::Timestamp;
use ostler_server::wire::{AnswerBody, InteractionBody, InteractionsBody};

use crate::client::{Body, Client};
use crate::commands::ps::tell_of_more;
use crate::error::{CommandError, Outcome};
use crate::output::{self, Line, Out, Table, ago, cells, print_json};
use crate::setup::{Setup, block_on};

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

/// Answers.
///
/// # Errors
/// When one is unknown, or no longer open.
pub(crate) fn run(setup: &Setup, args: &ApproveArgs) -> Outcome {
    let client = setup.client();
    block_on(async {
        let mut out = Out::new();
        for id in &args.ids {
            let answered = answer(&client, id, !args.deny).await?;
            let verb = if args.deny { "denied" } else { "approved" };
            let command = answered.approval.map_or(answered.message, |it| it.command);
            out.line(format!("{id} {verb}: {command}"))?;
        }
        out.flush()?;
        Ok(0)
    })
}

/// Says yes or no.
async fn answer(client: &Client, id: &str, yes: bool) -> Result<InteractionBody, CommandError> {
    let value = if yes { "yes" } else { "no" }.to_owned();
    let encoded: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let path = format!("/api/v1/interactions/{encoded}/answer");
    let body = Body::json(&AnswerBody { value })?;
    client.call(Method::POST, &path, body).await
}

/// Lists what waits for a person.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn list(setup: &Setup, args: &ApprovalsArgs) -> Outcome {
    let client = setup.client();
    let limit = args.limit.map(|limit| format!("?limit={limit}"));
    let path = format!("/api/v1/interactions{}", limit.unwrap_or_default());
    let list: InteractionsBody = block_on(client.call(Method::GET, &path, Body::None))?;
    let looked = list.interactions.len();
    let asked = |it: &InteractionBody| it.approval.is_some();
    let open: Vec<InteractionBody> = list.interactions.into_iter().filter(asked).collect();
    tell_of_more(looked, list.total, list.next.as_deref());
    if args.json {
        print_json(&open)?;
        return Ok(0);
    }
    let mut table = Table::new(&["ID", "ASKED", "RULE", "COMMAND"]);
    for asked in open {
        let Some(approval) = asked.approval else {
            continue;
        };
        table.row(cells![
            asked.id,
            ago(asked.created_at, Timestamp::now()),
            approval.rule,
            approval.command,
        ]);
    }
    let mut out = Out::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}

/// Asks the person at our terminal, if there is one; none where nobody can be asked.
///
/// # Errors
/// When the daemon does not take the answer.
pub(crate) async fn at_terminal(
    client: &Client,
    id: &str,
    (command, why): (&str, &str),
) -> Result<Option<bool>, CommandError> {
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    let why = Line::from(format!("ostler: {why}"));
    let question = format!("run {command}? [y/N] ");
    let asking = tokio::task::spawn_blocking(move || ask(&terminal, why, &question));
    let yes = tokio::select! {
        answered = asking => answered.ok().and_then(Result::ok).unwrap_or(false),
        _interrupted = tokio::signal::ctrl_c() => false,
    };
    answer(client, id, yes).await?;
    Ok(Some(yes))
}

fn ask(terminal: &File, why: Line, question: &str) -> std::io::Result<bool> {
    output::ask(terminal, &[why], question)?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
