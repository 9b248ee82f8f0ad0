//! The webhook of alerts: each one is posted to an address of the operator's, signed, and again with
//! growing delays where that fails. Nothing waits for it.

mod client;
mod counts;
mod delivery;
mod retry;
mod sender;
mod settings;

pub use counts::WebhookCounts;
pub use sender::WebhookSender;
pub use settings::{WebhookError, WebhookSecret, WebhookSettings, WebhookUrl};
