//! `ostler interactions watch`.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use ostler_api::{InteractionBody, InteractionServerMessage};
use ostler_model::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use super::args::InteractionWatchArgs;
use super::list::{asker, kind, remaining};
use crate::client::{DaemonClient, InteractionSocket, RetryLimit};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, format_time};

/// Prints questions as they are opened and end, until ctrl-c.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: &InteractionWatchArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())
            .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))?;
        tokio::select! {
            result = follow(&client, args.json) => result,
            _ = interrupt.recv() => Ok(0),
        }
    })
}

/// Follows one daemon after the other. Questions end with the daemon that holds them.
async fn follow(client: &DaemonClient, json: bool) -> CommandResult {
    let mut attempts = RetryLimit::new();
    let mut open = BTreeSet::new();
    loop {
        let result = match client.connect_interactions().await {
            Ok(socket) => print_all(socket, json, &mut attempts, &mut open).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            attempts.allow_retry(error)?;
        }
        if !open.is_empty() {
            let ids: Vec<String> = std::mem::take(&mut open).into_iter().collect();
            crate::print_note(&format!("the daemon ended, and with it {}", ids.join(", ")));
        }
    }
}

/// Prints what one daemon sends, until the connection breaks.
async fn print_all(
    mut socket: InteractionSocket,
    json: bool,
    attempts: &mut RetryLimit,
    open: &mut BTreeSet<String>,
) -> Result<(), CommandError> {
    loop {
        let message = socket.next().await?;
        attempts.reset();
        match &message {
            InteractionServerMessage::Opened { interaction } => {
                open.insert(interaction.id.clone());
            }
            InteractionServerMessage::Ended { interaction } => {
                open.remove(&interaction.id);
            }
            InteractionServerMessage::Gone { id } => {
                open.remove(id);
            }
            InteractionServerMessage::UpToDate | InteractionServerMessage::Refused { .. } => {}
        }
        let mut out = StdoutWriter::new();
        if json {
            let text = serde_json::to_string(&message).unwrap_or_default();
            out.write_json(&text)?;
        } else if let Some(line) = describe(&message) {
            let at = format_time(Timestamp::now(), &TimeZone::system());
            out.write_line(format!("{at}  {line}"))?;
        }
        out.flush()?;
    }
}

/// A message on one line; none where there is nothing to tell a person.
fn describe(message: &InteractionServerMessage) -> Option<String> {
    match message {
        InteractionServerMessage::Opened { interaction } => Some(question(interaction)),
        InteractionServerMessage::Ended { interaction } => {
            let end = interaction.end.as_ref();
            let text = end.map_or(&interaction.status, |end| &end.text);
            Some(format!("{} {text}", interaction.id))
        }
        InteractionServerMessage::Gone { id } => Some(format!("{id} is not yours any more")),
        InteractionServerMessage::Refused { message, .. } => Some(message.clone()),
        InteractionServerMessage::UpToDate => None,
    }
}

fn question(interaction: &InteractionBody) -> String {
    let InteractionBody {
        id,
        message,
        options,
        default,
        ..
    } = interaction;
    let left = interaction.remaining_ms.map(remaining).unwrap_or_default();
    let (kind, asker) = (kind(interaction), asker(interaction));
    let options = match options.as_slice() {
        [] => String::new(),
        options => format!(" [{}]", options.join(" | ")),
    };
    let default = default.as_ref();
    let default = default.map_or_else(String::new, |default| format!(" (default {default})"));
    format!("{id} asks ({kind} from {asker}, {left} left): {message}{options}{default}")
}
