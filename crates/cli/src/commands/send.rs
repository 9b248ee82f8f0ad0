//! `ostler send`.

use std::io::{self, Read as _};

use clap::Args;
use hyper::Method;
use ostler_api::{InputPieceBody, InputResponse, KeysBody, KeysResponse};
use ostler_model::ErrorCode;
use ostler_terminal::Key;

use super::ids;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// The most bytes that are sent from standard input at once.
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

/// Sends input to a session as one write, without input of others in between.
///
/// # Errors
/// When there is no such session, another client holds its writer lease, or the program does not
/// read.
pub(crate) fn run(context: &CliContext, args: SendArgs) -> CommandResult {
    let raw = if args.raw { Some(read_stdin()?) } else { None };
    let id = args.id.clone();
    let pieces = input_pieces(args)?;
    if raw.is_none() && pieces.is_empty() {
        return Err(
            CommandError::value("there is nothing to type").with_hint("give TEXT, --key or --raw")
        );
    }
    let client = context.client();
    block_on(async {
        let result = match raw {
            Some(bytes) => send_raw(&client, &id, bytes).await,
            None => send_pieces(&client, &id, pieces).await,
        };
        match result {
            Ok((bytes, accepted)) if accepted < bytes => Err(CommandError::new(
                ErrorCode::ProcessControl,
                format!("the program does not read: {accepted} of {bytes} bytes were taken"),
            )),
            Ok(_) => Ok(0),
            Err(error) => Err(ids::suggest(&client, &id, error).await),
        }
    })
}

/// What is typed, in order.
///
/// # Errors
/// For a name that is no key.
fn input_pieces(args: SendArgs) -> Result<Vec<InputPieceBody>, CommandError> {
    for name in &args.key {
        name.parse::<Key>()
            .map_err(|error| CommandError::value(format!("--key: {error}")))?;
    }
    let mut pieces = Vec::new();
    let enter = args.text.is_some() && args.key.is_empty() && !args.no_enter;
    if let Some(text) = args.text.filter(|text| !text.is_empty()) {
        pieces.push(if args.paste {
            InputPieceBody::Paste(text)
        } else {
            InputPieceBody::Text(text)
        });
    }
    pieces.extend(args.key.into_iter().map(InputPieceBody::Key));
    if enter {
        pieces.push(InputPieceBody::Key("enter".to_owned()));
    }
    Ok(pieces)
}

fn read_stdin() -> Result<Vec<u8>, CommandError> {
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

/// Sends pieces; returns their length in bytes, and how many bytes were accepted.
async fn send_pieces(
    client: &DaemonClient,
    id: &str,
    pieces: Vec<InputPieceBody>,
) -> Result<(u64, u64), CommandError> {
    let path = ids::path(id, "/keys");
    let body = RequestBody::json(&KeysBody { pieces })?;
    let result: KeysResponse = client.call(Method::POST, &path, body).await?;
    Ok((result.bytes, result.taken))
}

async fn send_raw(
    client: &DaemonClient,
    id: &str,
    bytes: Vec<u8>,
) -> Result<(u64, u64), CommandError> {
    let count = bytes.len() as u64;
    let path = ids::path(id, "/input");
    let response = client.call(Method::POST, &path, RequestBody::Octets(bytes.into()));
    let InputResponse { taken } = response.await?;
    Ok((count, taken))
}
