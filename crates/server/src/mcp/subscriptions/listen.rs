//! `subscriptions/listen` of revision 2026-07-28: one long request per stream of updates.

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio_util::sync::CancellationToken;

use super::follow::{self, Followed};
use super::outlet::Outlet;
use crate::mcp::context::Client;
use crate::mcp::desk::Desk;
use crate::mcp::resources::{Target, quota};

/// What of a requested filter we serve: resources of ours, and the list of them. Who asks is
/// not known here, so whose they are is looked at in [`listen`].
pub(in crate::mcp) fn accepted(requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
    let mut filter = SubscriptionFilter::new();
    filter.resources_list_changed = requested.resources_list_changed;
    filter.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let ours = uris.iter().filter(|uri| Target::parse(uri).is_ok());
        ours.cloned().collect()
    });
    Some(filter)
}

/// Tells of changes until the request is cancelled or the client has left. Nothing of it is
/// left then: the loops are part of the request.
pub(in crate::mcp) async fn listen(
    desk: &Desk,
    client: &Client,
    context: SubscriptionContext,
    left: &CancellationToken,
) -> Result<(), ErrorData> {
    let caller = &client.caller;
    desk.news().enter(caller).await;
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.as_deref().unwrap_or(&[]);
    let _slots = desk.news().slots(caller, uris.len()).map_err(quota)?;
    let outlet = Outlet::Sink(context.sink().clone());
    let mut loops: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    for uri in uris {
        let followed = Followed::new(desk, caller, uri)?;
        loops.push(followed.run(outlet.clone()).boxed());
    }
    if accepted.resources_list_changed == Some(true) {
        let changes = desk.news().list_changes(caller);
        loops.push(follow::list(changes, outlet).boxed());
    }
    let telling = async {
        while loops.next().await.is_some() {}
        // Nothing more can change; the stream is the client's to close.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = context.cancelled() => {}
        () = left.cancelled() => {}
        () = telling => {}
    }
    Ok(())
}
