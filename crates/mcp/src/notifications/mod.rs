//! Notifications: what happened to an agent's commands and has not been reported to it yet.
//!
//! One task per [`McpState`](super::McpState) reads every engine event (`event_feed`) and adds what
//! matters to the hub (`hub`): one bounded queue per session (`queue`); `handle` is what the rest of
//! the crate uses. From there it goes out as a line on the next tool answer, as log messages and as
//! resource updates; the latter two read the hub only when it changed, so that a client that does not
//! read costs nothing.

mod event_feed;
mod handle;
mod hub;
mod notification;
mod pattern_watch;
mod queue;

pub(super) use handle::Notifications;
pub(super) use hub::{ChangeWatcher, SuppressGuard};
pub(super) use notification::AgentNotification;
