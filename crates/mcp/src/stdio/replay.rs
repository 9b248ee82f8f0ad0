//! Restores what an earlier daemon left of a connection: the handshake, subscriptions and similar
//! requests are replayed on the client's behalf, and unanswered requests are carried out.

use rmcp::model::{
    ClientRequest, GetMeta as _, JsonRpcMessage, RequestId, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification,
};
use serde_json::json;

use super::request_table::AnswerRoute;
use super::shared_state::{StdioShared, encode_line};
use super::transport::{StdioTransport, replayed_id};
use crate::connection_log::{InputLine as Text, OutputKind};
use crate::json_rpc::{IncomingMessage, ParsedLine, parse_message};

/// Queues all of it, in the client's order.
pub(super) fn queue_replay(transport: &mut StdioTransport, shared: &StdioShared) {
    let (standing, live, uris) = shared.log.with_state(|backlog| {
        let uris: Vec<String> = backlog.subscriptions().map(str::to_owned).collect();
        (
            backlog.standing().to_vec(),
            backlog.unanswered().clone(),
            uris,
        )
    });
    for it in standing {
        replay_standing(transport, shared, it.line, &it.text);
    }
    // They may have changed while no daemon was watching.
    for uri in uris {
        transport.push_reply(updated_notification(&uri, None));
    }
    for (line, pending) in live {
        if pending.acknowledged {
            for (uri, id) in subscribed_resources(&pending.text) {
                transport.push_reply(updated_notification(&uri, Some(id)));
            }
        }
        let text = if pending.too_long {
            Text::TooLong(pending.text.clone())
        } else {
            Text::Whole(pending.text.clone())
        };
        transport.handle_line(line, &text, &pending);
    }
}

fn replay_standing(transport: &mut StdioTransport, shared: &StdioShared, line: u64, text: &[u8]) {
    let ParsedLine::Message(message) = parse_message(text) else {
        return;
    };
    let JsonRpcMessage::Request(mut request) = *message else {
        return;
    };
    request.id = replayed_id(line);
    if shared
        .table()
        .admit(&request.id, AnswerRoute::Replayed, false)
        .is_err()
    {
        return;
    }
    let is_handshake = matches!(request.request, ClientRequest::InitializeRequest(_));
    if let ClientRequest::InitializeRequest(initialize) = &request.request {
        // Pending batches were accepted under this revision, and its answer comes after them.
        shared.table().revision = Some(initialize.params.protocol_version.clone());
    }
    transport.enqueue(JsonRpcMessage::Request(request));
    if is_handshake {
        let text = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        if let Ok(initialized) = serde_json::from_value::<IncomingMessage>(text) {
            transport.enqueue(initialized);
        }
    }
}

/// The resources of a `subscriptions/listen`, and its id.
fn subscribed_resources(text: &[u8]) -> Vec<(String, RequestId)> {
    let ParsedLine::Message(message) = parse_message(text) else {
        return Vec::new();
    };
    let JsonRpcMessage::Request(request) = *message else {
        return Vec::new();
    };
    let ClientRequest::SubscriptionsListenRequest(listen) = request.request else {
        return Vec::new();
    };
    let filter = crate::subscriptions::accepted_filter(&listen.params.notifications);
    let uris = filter.and_then(|filter| filter.resource_subscriptions);
    let uris = uris.unwrap_or_default().into_iter();
    uris.map(|uri| (uri, request.id.clone())).collect()
}

fn updated_notification(uri: &str, subscription: Option<RequestId>) -> (OutputKind, Vec<u8>) {
    let params = ResourceUpdatedNotificationParam::new(uri);
    let mut notification =
        ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(params));
    if let Some(id) = subscription {
        notification.get_meta_mut().set_subscription_id(id);
    }
    let message: rmcp::service::TxJsonRpcMessage<rmcp::RoleServer> =
        JsonRpcMessage::notification(notification);
    (OutputKind::Message, encode_line(&message))
}
