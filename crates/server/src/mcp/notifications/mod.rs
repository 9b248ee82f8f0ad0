//! Wake-up: what happened to an agent's commands and has not been told to it yet.
//!
//! One task per [`McpState`](super::McpState) hears every event of the engine (`event_feed`) and puts what
//! matters on the board: one bounded queue per session (`queue`). From there it goes out as
//! a line on the next tool answer, as log messages and as resource updates; the latter two
//! only look at the board when it changed, so that a client that does not read costs nothing.

mod event_feed;
mod hub;
mod notification;
mod pattern_watch;
mod queue;

pub(super) use hub::{ChangeWatcher, Notifications, SuppressGuard};
pub(super) use notification::AgentNotification;
