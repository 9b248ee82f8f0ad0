//! `ostler approve` and `ostler approvals`: a person's word on commands the policy asks about.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};

use clap::Args;
use hyper::Method;
use ostler_model::Timestamp;
use ostler_server::render::clean;
use ostler_server::wire::{AnswerBody, InteractionBody, InteractionsBody};

use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, Table, ago, print_json};
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
            out.line(format!("{id} {verb}: {}", clean(&command)))?;
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
    let open: InteractionsBody = block_on(async {
        client
            .call(Method::GET, "/api/v1/interactions", Body::None)
            .await
    })?;
    let asked = |it: &InteractionBody| it.approval.is_some();
    let open: Vec<InteractionBody> = open.interactions.into_iter().filter(asked).collect();
    if args.json {
        print_json(&open)?;
        return Ok(0);
    }
    let mut table = Table::new(&["ID", "ASKED", "RULE", "COMMAND"]);
    for asked in open {
        let Some(approval) = asked.approval else {
            continue;
        };
        table.row(vec![
            asked.id,
            ago(asked.created_at, Timestamp::now()),
            approval.rule,
            clean(&approval.command).into_owned(),
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
    let question = format!("ostler: {why}\r\nrun {}? [y/N] ", clean(command));
    let asking = tokio::task::spawn_blocking(move || ask(&terminal, &question));
    let yes = tokio::select! {
        answered = asking => answered.ok().and_then(Result::ok).unwrap_or(false),
        _interrupted = tokio::signal::ctrl_c() => false,
    };
    answer(client, id, yes).await?;
    Ok(Some(yes))
}

fn ask(mut terminal: &File, question: &str) -> std::io::Result<bool> {
    terminal.write_all(question.as_bytes())?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
