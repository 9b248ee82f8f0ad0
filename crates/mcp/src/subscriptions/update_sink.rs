//! The destination of updates.

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionSink;
use rmcp::{Peer, RoleServer};

/// One client, in either era.
#[derive(Debug, Clone)]
pub(super) enum UpdateSink {
    /// Handshake era: the whole connection.
    Peer(Peer<RoleServer>),
    /// Later revisions: one `subscriptions/listen`.
    Sink(SubscriptionSink),
}

/// The client is gone, or has cancelled the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientGone;

impl UpdateSink {
    /// Reports a changed resource. Returns when the transport took the message.
    pub(super) async fn notify_updated(&self, uri: &str) -> Result<(), ClientGone> {
        match self {
            Self::Peer(peer) => {
                let params = ResourceUpdatedNotificationParam::new(uri);
                let sent = peer.notify_resource_updated(params).await;
                sent.map_err(|_| ClientGone)
            }
            Self::Sink(sink) => {
                let sent = sink.notify_resource_updated(uri).await;
                sent.map_err(|_| ClientGone)
            }
        }
    }

    /// Reports a changed resource list.
    pub(super) async fn notify_list_changed(&self) -> Result<(), ClientGone> {
        match self {
            Self::Peer(peer) => {
                let sent = peer.notify_resource_list_changed().await;
                sent.map_err(|_| ClientGone)
            }
            Self::Sink(sink) => {
                let sent = sink.notify_resource_list_changed().await;
                sent.map_err(|_| ClientGone)
            }
        }
    }
}
