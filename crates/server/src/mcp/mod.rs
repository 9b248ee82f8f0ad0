//! MCP over any byte stream: [`serve`] answers one client until its stream closes.
//!
//! Nobody outside this module sees the MCP library: `handler` and `convert` are its border,
//! and the `tools` speak in `reply::Reply` and [`Failure`](crate::error::Failure).

mod context;
mod convert;
mod handler;
mod output;
mod reply;
mod serve;
mod tools;

pub use context::{FrontContext, Profile, UnknownProfile};
pub use serve::{ServeError, serve};
