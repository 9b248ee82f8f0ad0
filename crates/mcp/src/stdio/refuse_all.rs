//! Error answers while there is no daemon: the client's proxy sends them itself, where no daemon
//! can be started, so that the client does not wait in vain.

use std::io;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::endpoint::StdioSource;
use super::serve::McpConnection;
use super::shared_state::{OutputLine, encode_line};
use crate::connection_log::{ConnectionLog, OutputKind, PendingLine, ReadOutcome};
use crate::json_rpc::{BatchMember, IncomingMessage, ParsedLine, parse_members, parse_message};

/// How long the client may take to read the answers, in milliseconds.
const WRITE_MS: u64 = 1_000;
/// The most reads of pending input; the rest is answered by the next call.
const READS: usize = 1_024;
/// The error of a request that is not carried out, in the range JSON-RPC leaves to
/// implementations.
const UNSERVED: ErrorCode = ErrorCode(-32_000);

impl McpConnection {
    /// Responds to every request the client has sent with `reason` as the error; subscriptions and
    /// other messages wait for the next daemon. Does not wait for input.
    ///
    /// # Errors
    /// When the client can neither be read nor written to, or its log cannot be.
    pub async fn refuse_all(self, reason: &str) -> io::Result<()> {
        read_available(&self.source, &self.shared.log)?;
        let live = self
            .shared
            .log
            .with_state(|backlog| backlog.unanswered().clone());
        let mut lines: Vec<OutputLine> = live
            .iter()
            .filter_map(|(line, pending)| refusal_line(*line, pending, reason))
            .collect();
        let written = self.shared.write(&mut lines);
        let limit = Duration::from_millis(WRITE_MS);
        // The part that it does not read now is in the log, and written later.
        timeout(limit, written).await.unwrap_or(Ok(()))
    }
}

/// Reads the available input.
fn read_available(source: &StdioSource, log: &ConnectionLog) -> io::Result<()> {
    let StdioSource::Descriptor(input) = source else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    for _ in 0..READS {
        let filled = log.read_into(|bytes| {
            let read = rustix::io::retry_on_intr(|| rustix::io::read(input.get_ref(), &mut *bytes));
            Ok(read?)
        });
        match filled {
            Ok(ReadOutcome::Lines(_)) => {}
            Ok(ReadOutcome::End | ReadOutcome::Sealed) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The error for a line; none where it takes no answer, or waits for the next daemon.
fn refusal_line(line: u64, pending: &PendingLine, reason: &str) -> Option<OutputLine> {
    let answer = match parse_message(&pending.text) {
        ParsedLine::Message(message) => request_refusal(&message, pending, 0, reason)?,
        ParsedLine::Batch(values) => {
            let members = (0..).zip(parse_members(values).unwrap_or_default());
            let answers: Vec<Value> = members
                .filter_map(|(index, member)| match member {
                    BatchMember::Message(message) => {
                        request_refusal(&message, pending, index, reason)
                    }
                    BatchMember::Refused(malformed) => Some(malformed.response()),
                    BatchMember::Ignored => None,
                })
                .collect();
            (!answers.is_empty()).then_some(Value::Array(answers))?
        }
        ParsedLine::Blank | ParsedLine::Malformed(_) | ParsedLine::Ignored => return None,
    };
    let standing = false;
    Some((OutputKind::Answer { line, standing }, encode_line(&answer)))
}

fn request_refusal(
    message: &IncomingMessage,
    pending: &PendingLine,
    index: u32,
    reason: &str,
) -> Option<Value> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    if matches!(
        request.request,
        ClientRequest::SubscriptionsListenRequest(_)
    ) {
        return None;
    }
    let had_started =
        pending.dispatched.contains(&index) || pending.bindings.iter().any(|it| it.member == index);
    Some(refusal_response(&request.id, reason, had_started))
}

fn refusal_response(id: &RequestId, reason: &str, had_started: bool) -> Value {
    let outcome = if had_started {
        "the daemon died while this ran; whether it took effect is not known, and what it started \
         goes on"
    } else {
        "this was not carried out"
    };
    let message = format!("{outcome}: {reason}");
    let error = ErrorData::new(UNSERVED, message, None);
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, pending: PendingLine) -> Option<Value> {
        let text = text.as_bytes().to_vec();
        let (output, line) = refusal_line(3, &PendingLine { text, ..pending }, "no disk")?;
        let standing = false;
        assert_eq!(output, OutputKind::Answer { line: 3, standing });
        Some(serde_json::from_slice(&line).unwrap())
    }

    #[test]
    fn requests_are_answered_and_nothing_else() {
        let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
        let response = answer(ping, PendingLine::default()).unwrap();
        assert_eq!(
            (&response["id"], &response["error"]["code"]),
            (&json!("a"), &json!(-32_000))
        );
        let text = response["error"]["message"].as_str().unwrap();
        assert!(text.contains("not carried out: no disk"), "{text}");
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        for text in [note, "", "nonsense", &format!("[{note}]")] {
            assert_eq!(answer(text, PendingLine::default()), None, "{text}");
        }
        let both = answer(&format!("[{ping},{note}]"), PendingLine::default()).unwrap();
        assert_eq!(both.as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn what_may_have_taken_effect_is_not_called_undone() {
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pty_write"}}"#;
        let dispatched = PendingLine {
            dispatched: [0].into(),
            ..PendingLine::default()
        };
        let response = answer(call, dispatched).unwrap();
        let text = response["error"]["message"].as_str().unwrap();
        assert!(text.contains("is not known"), "{text}");
    }
}
