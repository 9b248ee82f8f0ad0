//! One execution in an answer: as text (`execution_reply`, with `raw` output, the hints of
//! `repl` and the `next_calls`), its end in words (`end_text`), as fields (`fields`, `service_body`),
//! and notes about its isolation (`isolation_notes`).

pub(super) mod end_text;
pub(super) mod execution_reply;
pub(super) mod fields;
mod isolation_notes;
mod next_calls;
mod raw;
pub(super) mod repl;
mod service_body;

pub(super) use isolation_notes::isolation_notes;
pub(super) use service_body::{ServiceToolBody, call_name};
