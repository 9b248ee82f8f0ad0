//! What MCP over HTTP requires of the router that it is mounted in: it identifies callers and keeps the
//! sessions of the handshake era, also for the next daemon.

#![expect(
    deprecated,
    reason = "log levels are deprecated in the newest revision and kept for older ones"
)]

use std::fmt;

use futures_util::future::BoxFuture;
use rmcp::model::{CallToolResult, LoggingLevel};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interrupted::{InterruptCause, InterruptedCall};

/// The header with the session of a request of the handshake era.
pub(crate) const MCP_SESSION_HEADER: &str = "mcp-session-id";
/// How long clients may take to read the answers that a shutdown causes, in milliseconds.
pub(crate) const SHUTDOWN_ANSWERS_MS: u64 = 1_000;
/// The most subscriptions that are kept for the next daemon; those to ended processes count until
/// their client ends them.
const SUBSCRIPTIONS: usize = 256;

/// Callbacks of the router that MCP is mounted in, which identifies callers and keeps sessions.
pub(crate) trait SessionHooks: fmt::Debug + Send + Sync + 'static {
    /// An MCP session starts with these parameters of `initialize`, in a request with these
    /// extensions. The implementation may replace its [`ConnectedClient`](crate::ConnectedClient),
    /// which is then that of the session.
    fn on_session_started(&self, id: &str, initialize: Value, extensions: &mut http::Extensions);

    /// The `initialize` parameters of the session with this id, unless it has ended; an earlier
    /// daemon may have created it.
    fn initialize_params(&self, id: &str) -> Option<Value>;

    /// What its client has requested for as long as the session lasts.
    fn standing_requests(&self, id: &str) -> StandingRequests;

    /// Changes what [`standing_requests`](Self::standing_requests) returns, also under the next
    /// daemon.
    fn change_standing_requests(&self, id: &str, change: &dyn Fn(&mut StandingRequests));

    /// The state of a call whose answer is lost; none where the session has ended.
    fn interrupted_call(
        &self,
        id: &str,
        call: &InterruptedCall,
        cause: InterruptCause,
    ) -> Option<CallToolResult>;

    /// An MCP session has ended, for whatever reason.
    fn on_session_ended<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;
}

/// The requests of a session of the handshake era that hold until it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StandingRequests {
    /// The last `logging/setLevel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<LoggingLevel>,
    /// The resources of `resources/subscribe`, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<String>,
}

impl StandingRequests {
    pub(crate) fn subscriptions(&self) -> &[String] {
        &self.subscriptions
    }

    /// A subscription begins. Of too many, the oldest is forgotten.
    pub(crate) fn subscribe(&mut self, uri: &str) {
        self.unsubscribe(uri);
        if self.subscriptions.len() >= SUBSCRIPTIONS {
            self.subscriptions.remove(0);
        }
        self.subscriptions.push(uri.to_owned());
    }

    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        self.subscriptions.retain(|known| known != uri);
    }
}
