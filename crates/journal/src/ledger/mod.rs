//! The ledger: append-only, hash-chained lifecycle and audit entries of every request.

mod chain;
mod entry;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use chain::LEDGER_VERSION;
pub use entry::{LedgerCursor, LedgerEntry, LedgerRecord};
pub use reader::{LedgerReader, Verified, VerifyError};
pub use writer::{LEDGER_KEEP_DAYS, LEDGER_SEGMENT_BYTES, Ledger};
