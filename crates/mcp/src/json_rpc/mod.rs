//! JSON-RPC: from bytes to messages, whatever the transport. Malformed ones become the errors that
//! answer them.
//!
//! * `message`: one line or HTTP body.
//! * `batch`: the members of a batch.
//! * `repeated_key`: a key that a message has twice.
//! * `params`: what is wrong with the params of a method.

mod batch;
mod message;
mod params;
mod repeated_key;

pub(super) use batch::{BATCH_REVISION, BatchMember, parse_members, unsupported_batch};
pub(super) use message::{
    IN_FLIGHT, IncomingMessage, Malformed, ParsedLine, find_id, parse_message,
};
pub(super) use params::{params_problem, refuse_cursor, unknown_method};
