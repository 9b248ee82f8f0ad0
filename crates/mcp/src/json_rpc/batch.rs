//! The members of a JSON-RPC batch, independent of the transport. Pure.

use std::collections::HashMap;

use rmcp::model::{ClientRequest, GetMeta as _, JsonRpcMessage, ProtocolVersion, RequestId};
use serde_json::Value;

use super::message::{self, IncomingMessage, Malformed, ParsedLine};

/// The only revision of MCP with JSON-RPC batches.
pub(crate) const BATCH_REVISION: ProtocolVersion = ProtocolVersion::V_2025_03_26;
/// The most members of one batch.
pub(crate) const MAX_MEMBERS: usize = 256;

/// One member of a batch.
#[derive(Debug)]
pub(crate) enum BatchMember {
    /// A message to dispatch.
    Message(Box<IncomingMessage>),
    /// A member that is answered with an error.
    Refused(Malformed),
    /// A malformed notification or response, which gets no answer.
    Ignored,
}

/// Parses the members, in order; an error refuses the batch as a whole. All requests that share an
/// id are refused: their responses could not be distinguished.
pub(crate) fn parse_members(values: Vec<Value>) -> Result<Vec<BatchMember>, Malformed> {
    let count = values.len();
    if count > MAX_MEMBERS {
        let message = format!("a batch has at most {MAX_MEMBERS} members; this one has {count}");
        return Err(Malformed::request(None, message));
    }
    let mut members: Vec<BatchMember> = values.into_iter().map(parse_member).collect();
    let mut uses: HashMap<RequestId, usize> = HashMap::new();
    for id in members.iter().filter_map(request_id) {
        *uses.entry(id.clone()).or_default() += 1;
    }
    for member in &mut members {
        if let Some(id) = request_id(member).filter(|id| uses[*id] > 1) {
            let message = "several requests of this batch have this id; each needs its own";
            *member = BatchMember::Refused(Malformed::request(Some(id.clone()), message));
        }
    }
    Ok(members)
}

/// Why a connection of this revision takes no batch; `None` means before its handshake.
pub(crate) fn unsupported_batch(revision: Option<&str>) -> Malformed {
    let message = match revision {
        Some(revision) => format!(
            "JSON-RPC batches belong to revision {BATCH_REVISION}, and this connection speaks \
             {revision}: send each message by itself"
        ),
        None => format!(
            "a batch can come after the handshake of revision {BATCH_REVISION}: send each message by \
             itself"
        ),
    };
    Malformed::request(None, message)
}

fn request_id(member: &BatchMember) -> Option<&RequestId> {
    match member {
        BatchMember::Message(message) => match &**message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_) => None,
        },
        BatchMember::Refused(_) | BatchMember::Ignored => None,
    }
}

fn parse_member(value: Value) -> BatchMember {
    match message::parse_member(value) {
        ParsedLine::Blank | ParsedLine::Ignored => BatchMember::Ignored,
        ParsedLine::Batch(_) => {
            BatchMember::Refused(Malformed::request(None, "a batch must not hold a batch"))
        }
        ParsedLine::Malformed(malformed) => BatchMember::Refused(malformed),
        ParsedLine::Message(message) => match check_allowed_in_batch(&message) {
            Some(refused) => BatchMember::Refused(refused),
            None => BatchMember::Message(message),
        },
    }
}

/// Why a message must not be part of a batch, if so.
fn check_allowed_in_batch(message: &IncomingMessage) -> Option<Malformed> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let refused = |message: String| Some(Malformed::request(Some(request.id.clone()), message));
    let is_handshake = matches!(
        &request.request,
        ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
    );
    if is_handshake {
        return refused("initialize and server/discover must not be part of a batch".to_owned());
    }
    let requested_revision = request.request.get_meta().protocol_version()?;
    if requested_revision == BATCH_REVISION {
        return None;
    }
    refused(format!(
        "batches belong to revision {BATCH_REVISION}; this member names {requested_revision}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ping(id: impl Into<Value>) -> Value {
        json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
    }

    /// Describes each member: accepted, ignored, or the id and code of its error.
    fn describe_members(values: Vec<Value>) -> Vec<Value> {
        let members = parse_members(values).unwrap();
        members
            .into_iter()
            .map(|member| match member {
                BatchMember::Message(_) => json!("accepted"),
                BatchMember::Ignored => json!("ignored"),
                BatchMember::Refused(refused) => {
                    let answer = refused.response();
                    json!([answer["id"], answer["error"]["code"]])
                }
            })
            .collect()
    }

    #[test]
    fn each_member_is_judged_by_itself() {
        let values = vec![
            ping(1),
            json!(5),
            json!([ping(2)]),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "1.0", "method": "x"}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 4, "method": "no/such"}),
            json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
        ];
        let expected = json!([
            "accepted",
            [null, -32600],
            [null, -32600],
            "accepted",
            "ignored",
            [3, -32602],
            "accepted",
            "accepted"
        ]);
        assert_eq!(json!(describe_members(values)), expected);
    }

    #[test]
    fn requests_that_share_an_id_are_all_refused() {
        let values = vec![ping(1), ping("1"), ping(2), ping(1)];
        let expected = json!([[1, -32600], "accepted", "accepted", [1, -32600]]);
        assert_eq!(json!(describe_members(values)), expected);
    }

    #[test]
    fn the_handshake_and_other_revisions_are_refused_in_it() {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"}}});
        let later = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
        let members = describe_members(vec![hello, later, ping(3)]);
        assert_eq!(
            json!(members),
            json!([[1, -32600], [2, -32600], "accepted"])
        );
    }

    #[test]
    fn there_is_a_limit() {
        let many: Vec<Value> = (0..=MAX_MEMBERS).map(ping).collect();
        let refused = parse_members(many.clone()).unwrap_err().response();
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        let most = parse_members(many[1..].to_vec()).unwrap();
        assert_eq!(most.len(), MAX_MEMBERS);
    }
}
