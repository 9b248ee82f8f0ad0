//! Questions to the person at the client (B7, F5), in both eras: before 2026-07-28 the server
//! asks while the call waits (`ask`); since then the call is answered with the question and
//! a sealed state, and repeated with the answer. Secrets are never asked for in a form.

mod ask;
mod form;
mod prompt;
mod seal;

pub(super) use ask::{Asked, DECLINED, DISMISSED, ask, required, resume};
pub(super) use form::{Reply, requests};
pub(super) use prompt::{Pending, goes_on, open_question, pending, prompted, question};
pub(super) use seal::{Seals, Ticket, about};
