//! What an earlier service left of a connection: the handshake, subscriptions and the like are
//! made again in the client's stead, and requests without an answer are carried out.

use rmcp::model::{
    ClientRequest, GetMeta as _, JsonRpcMessage, RequestId, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification,
};
use serde_json::json;

use super::lines::Line as Text;
use super::message::{self, Incoming, Parsed};
use super::record::Output;
use super::shared::{Shared, encoded};
use super::table::Role;
use super::transport::{Stdio, replayed_id};

/// Queues all of it, in the order in which the client said it.
pub(super) fn queue(transport: &mut Stdio, shared: &Shared) {
    let (standing, live, uris) = shared.log.with(|backlog| {
        let uris: Vec<String> = backlog.subscriptions().map(str::to_owned).collect();
        (backlog.standing().to_vec(), backlog.live().clone(), uris)
    });
    for it in standing {
        make_again(transport, shared, it.line, &it.text);
    }
    // What happened to them while nobody told is not known.
    for uri in uris {
        transport.reply(updated(&uri, None));
    }
    for (line, pending) in live {
        if pending.acknowledged {
            for (uri, id) in listened_to(&pending.text) {
                transport.reply(updated(&uri, Some(id)));
            }
        }
        let text = if pending.too_long {
            Text::TooLong(pending.text.clone())
        } else {
            Text::Whole(pending.text.clone())
        };
        transport.take(line, &text, &pending);
    }
}

fn make_again(transport: &mut Stdio, shared: &Shared, line: u64, text: &[u8]) {
    let Parsed::Message(message) = message::parse(text) else {
        return;
    };
    let JsonRpcMessage::Request(mut request) = *message else {
        return;
    };
    request.id = replayed_id(line);
    if shared
        .table()
        .admit(&request.id, Role::Replayed, false)
        .is_err()
    {
        return;
    }
    let is_handshake = matches!(request.request, ClientRequest::InitializeRequest(_));
    if let ClientRequest::InitializeRequest(hello) = &request.request {
        // Batches that wait were taken under it, and its answer comes after them.
        shared.table().revision = Some(hello.params.protocol_version.clone());
    }
    transport.inject(JsonRpcMessage::Request(request));
    if is_handshake {
        let text = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        if let Ok(initialized) = serde_json::from_value::<Incoming>(text) {
            transport.inject(initialized);
        }
    }
}

/// The resources of a `subscriptions/listen`, and its id.
fn listened_to(text: &[u8]) -> Vec<(String, RequestId)> {
    let Parsed::Message(message) = message::parse(text) else {
        return Vec::new();
    };
    let JsonRpcMessage::Request(request) = *message else {
        return Vec::new();
    };
    let ClientRequest::SubscriptionsListenRequest(listen) = request.request else {
        return Vec::new();
    };
    let filter = crate::mcp::subscriptions::accepted(&listen.params.notifications);
    let uris = filter.and_then(|filter| filter.resource_subscriptions);
    let uris = uris.unwrap_or_default().into_iter();
    uris.map(|uri| (uri, request.id.clone())).collect()
}

fn updated(uri: &str, subscription: Option<RequestId>) -> (Output, Vec<u8>) {
    let params = ResourceUpdatedNotificationParam::new(uri);
    let mut notification =
        ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(params));
    if let Some(id) = subscription {
        notification.get_meta_mut().set_subscription_id(id);
    }
    let message: rmcp::service::TxJsonRpcMessage<rmcp::RoleServer> =
        JsonRpcMessage::notification(notification);
    (Output::Message, encoded(&message))
}
