//! `ostler interactions`: the table of questions.

use std::time::Duration;

use hyper::Method;
use ostler_api::{InteractionBody, InteractionsBody};
use ostler_model::{QuestionSource, duration};

use super::args::InteractionListArgs;
use crate::attach::window_size;
use crate::client::RequestBody;
use crate::commands::ps::note_more_results;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;
use crate::output::{StdoutWriter, StyledLine, TextTable, cells, print_json};

/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 120;
/// The fewest characters of a question that are shown.
const MIN_CHARS: usize = 16;

/// Lists questions, newest first.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: &InteractionListArgs) -> CommandResult {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("all", &args.all.to_string());
    if let Some(limit) = args.limit {
        query.append_pair("limit", &limit.to_string());
    }
    let path = format!("/api/v1/interactions?{}", query.finish());
    let client = context.client();
    let list: InteractionsBody = block_on(client.call(Method::GET, &path, RequestBody::None))?;
    note_more_results(list.interactions.len(), list.total, list.next.as_deref());
    if args.json {
        print_json(&list.interactions)?;
        return Ok(0);
    }
    let headings = [
        "ID", "KIND", "FROM", "LEFT", "QUESTION", "OPTIONS", "DEFAULT",
    ];
    let mut table = TextTable::new(&headings);
    for interaction in &list.interactions {
        table.push_row(row(interaction));
    }
    let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
    table.fit_width("QUESTION", columns, MIN_CHARS);
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}

fn row(interaction: &InteractionBody) -> Vec<StyledLine> {
    let left = match (interaction.remaining_ms, &interaction.end) {
        (Some(left), _) => remaining(left),
        (None, Some(end)) => end.text.clone(),
        (None, None) => interaction.status.clone(),
    };
    cells![
        &interaction.id,
        kind(interaction),
        asker(interaction),
        left,
        &interaction.message,
        interaction.options.join(" | "),
        interaction.default.as_deref().unwrap_or_default(),
    ]
}

/// The kind; that of a secret says so.
pub(super) fn kind(interaction: &InteractionBody) -> String {
    let secret = if interaction.secret { ", secret" } else { "" };
    format!("{}{secret}", interaction.kind.as_str())
}

/// Who or what asks: an execution, the command policy, or a client by its session or principal.
pub(super) fn asker(interaction: &InteractionBody) -> &str {
    let client = || {
        let session = interaction.session.as_deref();
        session.unwrap_or(&interaction.principal)
    };
    match interaction.source {
        Some(QuestionSource::Policy) => "policy",
        _ => interaction.execution.as_deref().unwrap_or_else(client),
    }
}

pub(super) fn remaining(ms: u64) -> String {
    duration::compact(Duration::from_millis(ms))
}
