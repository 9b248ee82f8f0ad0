//! `ostler send`.

use std::io::{self, Read as _};

use clap::Args;
use hyper::Method;
use ostler_model::ErrorCode;
use ostler_server::wire::{KeysBody, PieceBody, TakenBody, TypedBody};

use super::ids;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// The most that is typed at once from standard input.
const RAW_BYTES: u64 = 1024 * 1024;

/// What `send` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Text is followed by Enter, unless --no-enter or a --key says otherwise. Examples:
  ostler send ID 'echo hello'
  ostler send ID --key ctrl-c
  ostler send ID ':wq' --key enter
  ostler send ID --no-enter y")]
pub(crate) struct SendArgs {
    /// Which session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Text to type
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// A key to press after the text, for example enter, ctrl-c, alt-left, f5; repeatable
    #[arg(short, long, value_name = "KEY")]
    key: Vec<String>,
    /// Paste the text: programs that tell pastes from typing are told
    #[arg(long, requires = "text")]
    paste: bool,
    /// No Enter after the text
    #[arg(long, requires = "text")]
    no_enter: bool,
    /// Type what standard input holds, as bytes
    #[arg(long, conflicts_with_all = ["text", "key"])]
    raw: bool,
}

/// Types into a session, as one write that no other gets into.
///
/// # Errors
/// When there is no such session, somebody else types, or the program does not read.
pub(crate) fn run(setup: &Setup, args: SendArgs) -> Outcome {
    let raw = if args.raw { Some(read()?) } else { None };
    let id = args.id.clone();
    let pieces = pieces(args);
    if raw.is_none() && pieces.is_empty() {
        return Err(
            CommandError::value("there is nothing to type").with_hint("give TEXT, --key or --raw")
        );
    }
    let client = setup.client();
    block_on(async {
        let sent = match raw {
            Some(bytes) => write(&client, &id, bytes).await,
            None => type_in(&client, &id, pieces).await,
        };
        match sent {
            Ok((bytes, taken)) if taken < bytes => Err(CommandError::new(
                ErrorCode::ProcessControl,
                format!("the program does not read: {taken} of {bytes} bytes were taken"),
            )),
            Ok(_) => Ok(0),
            Err(error) => Err(ids::suggest(&client, &id, of_keys(error)).await),
        }
    })
}

fn pieces(args: SendArgs) -> Vec<PieceBody> {
    let mut pieces = Vec::new();
    let enter = args.text.is_some() && args.key.is_empty() && !args.no_enter;
    if let Some(text) = args.text.filter(|text| !text.is_empty()) {
        pieces.push(if args.paste {
            PieceBody::Paste(text)
        } else {
            PieceBody::Text(text)
        });
    }
    pieces.extend(args.key.into_iter().map(PieceBody::Key));
    if enter {
        pieces.push(PieceBody::Key("enter".to_owned()));
    }
    pieces
}

/// In the words of the command line: of the pieces, only a key can be none.
fn of_keys(mut error: CommandError) -> CommandError {
    if let CommandError::Told { message, .. } = &mut error
        && let Some((_, reason)) = message
            .strip_prefix("field 'pieces[")
            .and_then(|rest| rest.split_once("]': "))
    {
        *message = format!("--key: {reason}");
    }
    error
}

fn read() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(RAW_BYTES + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| CommandError::value(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > RAW_BYTES {
        let message = format!("standard input holds more than {RAW_BYTES} bytes");
        return Err(CommandError::value(message).with_hint("pipe it into `ostler attach` instead"));
    }
    Ok(bytes)
}

/// Types pieces; how many bytes they were, and how many were taken.
async fn type_in(
    client: &Client,
    id: &str,
    pieces: Vec<PieceBody>,
) -> Result<(u64, u64), CommandError> {
    let path = ids::path(id, "/keys");
    let body = Body::json(&KeysBody { pieces })?;
    let typed: TypedBody = client.call(Method::POST, &path, body).await?;
    Ok((typed.bytes, typed.taken))
}

async fn write(client: &Client, id: &str, bytes: Vec<u8>) -> Result<(u64, u64), CommandError> {
    let whole = bytes.len() as u64;
    let path = ids::path(id, "/input");
    let asked = client.call(Method::POST, &path, Body::Octets(bytes.into()));
    let TakenBody { taken } = asked.await?;
    Ok((whole, taken))
}
