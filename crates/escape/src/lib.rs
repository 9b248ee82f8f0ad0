//! The parser of terminal output: text, and the escape sequences (ECMA-48, DEC VT500) between it.
//!
//! The grammar is that of the `vte` crate. [`EscapeParser`] adds what readers of a stream need
//! besides: text as the bytes that were written, the place of each sequence in the stream,
//! strings told from strings that were broken off, and a state that can be stored.
//!
//! What a sequence means is up to each reader. Everything here is pure.
#![forbid(unsafe_code)]

mod control_sequence;
mod parser;

pub use control_sequence::ControlSequence;
pub use parser::{EscapeEvent, EscapeParser, SEQUENCE_BYTES};
