//! The resource monitor: samples what every living execution uses, keeps a history of it in memory
//! and the largest values, and tells a listener of each sample.

mod counters;
mod history;
mod listener;
#[cfg(test)]
mod tests;
mod usage_monitor;

pub use history::{UsageHistory, UsageHistoryQuery, UsageResolution};
pub use listener::UsageListener;
pub(crate) use usage_monitor::UsageMonitor;
