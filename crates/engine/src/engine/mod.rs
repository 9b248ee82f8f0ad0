//! [`Engine`], the facade: it owns every part, wires them, and delegates. Nothing imports it.

mod contexts;
mod control;
mod event_feed;
mod executions;
mod handle;
mod interactions;
mod output;
mod policy;
mod processes;
mod projects;
mod refusals;
mod services;
mod shells;
mod terminals;
mod usage;

pub use event_feed::{EventFeedPage, EventFeedQuery, SCANNED_EVENTS};
pub use handle::Engine;
