//! The members of a JSON-RPC batch, over whatever transport it came. Pure.

use std::collections::HashMap;

use rmcp::model::{ClientRequest, GetMeta as _, JsonRpcMessage, ProtocolVersion, RequestId};
use serde_json::Value;

use super::stdio::message::{self, Incoming, Malformed, Parsed};

/// The only revision that knows JSON-RPC batches.
pub(super) const REVISION: ProtocolVersion = ProtocolVersion::V_2025_03_26;
/// Members that one batch may have.
pub(super) const MEMBERS: usize = 256;

/// One member.
#[derive(Debug)]
pub(super) enum Member {
    /// A message to be handed on.
    Message(Box<Incoming>),
    /// What must be answered with an error.
    Refused(Malformed),
    /// A notification or a response we do not understand: not answered.
    Ignored,
}

/// The members, in order; an error where the batch as a whole is not taken. Requests that
/// share an id are refused, all of them: nobody could tell their answers apart.
pub(super) fn members(values: Vec<Value>) -> Result<Vec<Member>, Malformed> {
    let count = values.len();
    if count > MEMBERS {
        let message = format!("a batch has at most {MEMBERS} members; this one has {count}");
        return Err(Malformed::request(None, message));
    }
    let mut members: Vec<Member> = values.into_iter().map(member).collect();
    let mut uses: HashMap<RequestId, usize> = HashMap::new();
    for id in members.iter().filter_map(request_id) {
        *uses.entry(id.clone()).or_default() += 1;
    }
    for member in &mut members {
        if let Some(id) = request_id(member).filter(|id| uses[*id] > 1) {
            let message = "several requests of this batch have this id; each needs its own";
            *member = Member::Refused(Malformed::request(Some(id.clone()), message));
        }
    }
    Ok(members)
}

/// Why a connection of this revision takes no batch; `None` before its handshake.
pub(super) fn not_taken(revision: Option<&str>) -> Malformed {
    let message = match revision {
        Some(revision) => format!(
            "JSON-RPC batches belong to revision {REVISION}, and this connection speaks \
             {revision}: send each message by itself"
        ),
        None => format!(
            "a batch can come after the handshake of revision {REVISION}: send each message by \
             itself"
        ),
    };
    Malformed::request(None, message)
}

fn request_id(member: &Member) -> Option<&RequestId> {
    match member {
        Member::Message(message) => match &**message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_) => None,
        },
        Member::Refused(_) | Member::Ignored => None,
    }
}

fn member(value: Value) -> Member {
    match message::member(value) {
        Parsed::Blank | Parsed::Ignored => Member::Ignored,
        Parsed::Batch(_) => {
            Member::Refused(Malformed::request(None, "a batch must not hold a batch"))
        }
        Parsed::Malformed(malformed) => Member::Refused(malformed),
        Parsed::Message(message) => match misplaced(&message) {
            Some(refused) => Member::Refused(refused),
            None => Member::Message(message),
        },
    }
}

/// What a message in a batch must not be.
fn misplaced(message: &Incoming) -> Option<Malformed> {
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
    let named = request.request.get_meta().protocol_version()?;
    if named == REVISION {
        return None;
    }
    refused(format!(
        "batches belong to revision {REVISION}; this member names {named}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ping(id: impl Into<Value>) -> Value {
        json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
    }

    /// Each member: taken, ignored, or the id and code of its error.
    fn told(values: Vec<Value>) -> Vec<Value> {
        let members = members(values).unwrap();
        members
            .into_iter()
            .map(|member| match member {
                Member::Message(_) => json!("taken"),
                Member::Ignored => json!("ignored"),
                Member::Refused(refused) => {
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
            "taken",
            [null, -32600],
            [null, -32600],
            "taken",
            "ignored",
            [3, -32602],
            "taken",
            "taken"
        ]);
        assert_eq!(json!(told(values)), expected);
    }

    #[test]
    fn requests_that_share_an_id_are_all_refused() {
        let values = vec![ping(1), ping("1"), ping(2), ping(1)];
        let expected = json!([[1, -32600], "taken", "taken", [1, -32600]]);
        assert_eq!(json!(told(values)), expected);
    }

    #[test]
    fn the_handshake_and_other_revisions_have_no_place_in_it() {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"}}});
        let later = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
        let told = told(vec![hello, later, ping(3)]);
        assert_eq!(json!(told), json!([[1, -32600], [2, -32600], "taken"]));
    }

    #[test]
    fn there_is_a_limit() {
        let many: Vec<Value> = (0..=MEMBERS).map(ping).collect();
        let refused = members(many.clone()).unwrap_err().response();
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        let most = members(many[1..].to_vec()).unwrap();
        assert_eq!(most.len(), MEMBERS);
    }
}
