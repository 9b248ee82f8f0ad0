//! Alerts: compares each sample of the resource monitor with the thresholds of its execution, and
//! tells once for each crossing: the ledger (and so the event feed), the log, and subscribers.

mod manager;
mod notice;
mod store;

pub(crate) use manager::AlertManager;
pub use notice::AlertNotice;
