//! Answers while nobody can serve: the client's proxy gives them itself, where no daemon can be
//! started, so that nobody waits for what does not come.

use std::io;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::backlog::Pending;
use super::endpoint::Source;
use super::log::{Filled, Log};
use super::message::{self, Parsed};
use super::record::Output;
use super::serve::Connection;
use super::shared::{Line, encoded};
use crate::mcp::batch::{self, Member};

/// How long the client may take to read the answers, in milliseconds.
const WRITE_MS: u64 = 1_000;
/// The most reads of what the client has sent; the rest is answered by the next call.
const READS: usize = 1_024;
/// The error of a request that nobody carries out, in the range JSON-RPC leaves to
/// implementations.
const UNSERVED: ErrorCode = ErrorCode(-32_000);

impl Connection {
    /// Answers every request that the client has sent with why it is not carried out;
    /// subscriptions and what is no request wait for the next service. Waits for no input.
    ///
    /// # Errors
    /// When the client can neither be read nor written to, or its log cannot be.
    pub async fn refuse(self, reason: &str) -> io::Result<()> {
        read(&self.source, &self.shared.log)?;
        let live = self.shared.log.with(|backlog| backlog.live().clone());
        let mut lines: Vec<Line> = live
            .iter()
            .filter_map(|(line, pending)| refused(*line, pending, reason))
            .collect();
        let written = self.shared.write(&mut lines);
        let limit = Duration::from_millis(WRITE_MS);
        // What it does not read now is in the log, and written later.
        timeout(limit, written).await.unwrap_or(Ok(()))
    }
}

/// Reads what is there.
fn read(source: &Source, log: &Log) -> io::Result<()> {
    let Source::Descriptor(input) = source else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    for _ in 0..READS {
        let filled = log.fill(|bytes| {
            let read = rustix::io::retry_on_intr(|| rustix::io::read(input.get_ref(), &mut *bytes));
            Ok(read?)
        });
        match filled {
            Ok(Filled::Lines(_)) => {}
            Ok(Filled::End | Filled::Sealed) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The answer to a line; none where it takes none, or one that waits for the next service.
fn refused(line: u64, pending: &Pending, reason: &str) -> Option<Line> {
    let answer = match message::parse(&pending.text) {
        Parsed::Message(message) => one(&message, pending, (0, reason))?,
        Parsed::Batch(values) => {
            let members = (0..).zip(batch::members(values).unwrap_or_default());
            let answers: Vec<Value> = members
                .filter_map(|(place, member)| match member {
                    Member::Message(message) => one(&message, pending, (place, reason)),
                    Member::Refused(malformed) => Some(malformed.response()),
                    Member::Ignored => None,
                })
                .collect();
            (!answers.is_empty()).then_some(Value::Array(answers))?
        }
        Parsed::Blank | Parsed::Malformed(_) | Parsed::Ignored => return None,
    };
    let standing = false;
    Some((Output::Answer { line, standing }, encoded(&answer)))
}

fn one(
    message: &message::Incoming,
    pending: &Pending,
    (place, reason): (u32, &str),
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
    let begun =
        pending.dispatched.contains(&place) || pending.bindings.iter().any(|it| it.member == place);
    Some(response(&request.id, reason, begun))
}

fn response(id: &RequestId, reason: &str, begun: bool) -> Value {
    let what = if begun {
        "the daemon died while this ran; whether it took effect is not known, and what it started \
         goes on"
    } else {
        "this was not carried out"
    };
    let message = format!("{what}: {reason}");
    let error = ErrorData::new(UNSERVED, message, None);
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, pending: Pending) -> Option<Value> {
        let text = text.as_bytes().to_vec();
        let (output, line) = refused(3, &Pending { text, ..pending }, "no disk")?;
        let standing = false;
        assert_eq!(output, Output::Answer { line: 3, standing });
        Some(serde_json::from_slice(&line).unwrap())
    }

    #[test]
    fn requests_are_answered_and_nothing_else() {
        let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
        let told = answer(ping, Pending::default()).unwrap();
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&json!("a"), &json!(-32_000))
        );
        let text = told["error"]["message"].as_str().unwrap();
        assert!(text.contains("not carried out: no disk"), "{text}");
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        for text in [note, "", "nonsense", &format!("[{note}]")] {
            assert_eq!(answer(text, Pending::default()), None, "{text}");
        }
        let both = answer(&format!("[{ping},{note}]"), Pending::default()).unwrap();
        assert_eq!(both.as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn what_may_have_taken_effect_is_not_called_undone() {
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pty_write"}}"#;
        let dispatched = Pending {
            dispatched: [0].into(),
            ..Pending::default()
        };
        let told = answer(call, dispatched).unwrap();
        let text = told["error"]["message"].as_str().unwrap();
        assert!(text.contains("is not known"), "{text}");
    }
}
