//! The ledger: append-only, hash-chained lifecycle and audit entries of every request.

mod audit;
mod entry;
mod hash_chain;
mod heads;
mod reader;
mod writer;

#[cfg(test)]
mod heads_tests;
#[cfg(test)]
mod tests;

pub use audit::{AuditFinding, AuditReport};
pub use entry::{LedgerCursor, LedgerEntry, LedgerPage, LedgerRecord};
pub use hash_chain::LEDGER_VERSION;
pub use heads::{HEAD_INTERVAL, HEADS_VERSION, HeadKey, HeadWriter, LedgerHead};
pub use reader::{LedgerReader, VerifiedChain, VerifyError};
pub use writer::{LEDGER_KEEP_DAYS, LEDGER_SEGMENT_BYTES, Ledger};
