//! `subscriptions/listen` of revision 2026-07-28: one long request per stream of updates.

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio_util::sync::CancellationToken;

use super::resource_watch::{self, WatchedResource};
use super::update_sink::UpdateSink;
use crate::client::ConnectedClient;
use crate::resources::{ResourceTarget, quota_error};
use crate::state::McpState;

/// The part of a requested filter that is served: the server's resources, and their list. The
/// caller is not known here, so [`listen`] checks access.
pub(crate) fn accepted_filter(requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
    let mut filter = SubscriptionFilter::new();
    filter.resources_list_changed = requested.resources_list_changed;
    filter.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let served = uris.iter().filter(|uri| ResourceTarget::parse(uri).is_ok());
        served.cloned().collect()
    });
    Some(filter)
}

/// Sends changes until the request is cancelled or the client has disconnected. Nothing is left
/// then: the loops are part of the request.
pub(crate) async fn listen(
    mcp_state: &McpState,
    client: &ConnectedClient,
    context: SubscriptionContext,
    input_closed: &CancellationToken,
) -> Result<(), ErrorData> {
    let caller = &client.caller;
    mcp_state.notifications().enter_session(caller).await;
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.as_deref().unwrap_or(&[]);
    let _slots = mcp_state
        .notifications()
        .reserve_subscriptions(caller, uris.len())
        .map_err(quota_error)?;
    let sink = UpdateSink::Sink(context.sink().clone());
    let mut loops: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    for uri in uris {
        let watched = WatchedResource::new(mcp_state, caller, uri)?;
        loops.push(watched.run(sink.clone()).boxed());
    }
    if accepted.resources_list_changed == Some(true) {
        let changes = mcp_state.notifications().list_changes(caller);
        loops.push(resource_watch::notify_list_changes(changes, sink).boxed());
    }
    let notifying = async {
        while loops.next().await.is_some() {}
        // Nothing can change any more; the client closes the stream.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = context.cancelled() => {}
        () = input_closed.cancelled() => {}
        () = notifying => {}
    }
    Ok(())
}
