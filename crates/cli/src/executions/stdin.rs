//! Sends standard input to an execution.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use ostler_api::InputResponse;
use ostler_model::{ErrorCode, InputId};
use tokio::io::AsyncReadExt as _;

use super::ids;
use crate::client::{DaemonClient, RequestBody, RetryLimit};
use crate::error::CommandError;

/// The most bytes of input sent at once.
const INPUT_BYTES: usize = 64 * 1024;
/// The first and the longest delay before input that was not accepted is sent again, in
/// milliseconds; it doubles in between.
const RETRY_MS: (u64, u64) = (5, 500);

/// Sends standard input to the command until either ends. With `close`, the end of input closes
/// that of the command; a terminal gets its end-of-file character.
///
/// # Errors
/// When the daemon does not accept it.
pub(crate) async fn feed_stdin(
    client: DaemonClient,
    id: String,
    close: bool,
) -> Result<(), CommandError> {
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; INPUT_BYTES];
    loop {
        let read = match stdin.read(&mut buffer).await {
            Ok(read) => read,
            Err(error) => {
                crate::print_note(&unreadable_note(&error));
                0
            }
        };
        let bytes = Bytes::copy_from_slice(&buffer[..read]);
        let last = read == 0;
        if !last || close {
            send_input(&client, &id, bytes, last).await?;
        }
        if last {
            return Ok(());
        }
    }
}

/// The note about a standard input that cannot be read: the command gets its end.
pub(crate) fn unreadable_note(error: &std::io::Error) -> String {
    format!("standard input cannot be read: {error}; the command gets none")
}

/// Sends bytes until all were accepted. Where the daemon dies, the next one gets them again: the
/// command's supervisor process knows what it accepted of them.
async fn send_input(
    client: &DaemonClient,
    id: &str,
    mut bytes: Bytes,
    last: bool,
) -> Result<(), CommandError> {
    let mut pause = RETRY_MS.0;
    let mut attempts = RetryLimit::new();
    let mut input = Some(InputId::mint());
    loop {
        let with_id = input.map_or_else(String::new, |input| format!("&input_id={input}"));
        let path = ids::path(id, &format!("/input?close={last}{with_id}"));
        let body = RequestBody::Octets(bytes.clone());
        let result: InputResponse = match client.call(Method::POST, &path, body).await {
            Err(error @ CommandError::Disconnected(_)) => {
                attempts.allow_retry(error)?;
                continue;
            }
            // A daemon of an earlier version, which goes on after an upgrade, knows no ids.
            Err(error) if error.code() == Some(ErrorCode::Value) && input.is_some() => {
                input = None;
                continue;
            }
            answer => answer?,
        };
        // What is left is another input.
        input = input.map(|_| InputId::mint());
        let accepted = usize::try_from(result.taken).unwrap_or(usize::MAX);
        if accepted >= bytes.len() {
            return Ok(());
        }
        if accepted > 0 {
            pause = RETRY_MS.0;
        }
        bytes = bytes.slice(accepted..);
        let until = tokio::time::Instant::now() + Duration::from_millis(pause);
        tokio::time::sleep_until(until).await;
        pause = (pause * 2).min(RETRY_MS.1);
    }
}
