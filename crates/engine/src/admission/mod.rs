//! From a request to a spec and a plan, or a refusal. Nothing is started or kept here.

pub mod allow;
pub mod arguments;
pub mod directory;
pub mod environment;
pub mod isolation;
pub mod program;
pub mod quota;
mod resolve;
#[cfg(test)]
mod tests;
mod wrapper;

pub(crate) use resolve::{Admitted, Draft, Rules, admit, again};
