//! The ledger: append-only, hash-chained lifecycle and audit entries of every request.

mod entry;
mod hash_chain;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use entry::{LedgerCursor, LedgerEntry, LedgerRecord};
pub use hash_chain::LEDGER_VERSION;
pub use reader::{LedgerReader, VerifiedChain, VerifyError};
pub use writer::{LEDGER_KEEP_DAYS, LEDGER_SEGMENT_BYTES, Ledger};
