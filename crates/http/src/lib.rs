//! REST and the network interface: the listeners, authentication, and what is mounted behind it.
//!
//! [`app`] composes it. A request passes `origin_check` (Host and Origin), `auth` (bearer token, or
//! the two halves of a page → identity), `rate_limit` (requests a second), `in_flight` (concurrency), `valid_response`
//! (its end with the token) and `limits` (size), then the routes of MCP, which the
//! embedder gives, or those of [`rest`].
//!
//! * [`rest`]: one file per resource, [`rest::router`] puts them together.
//! * [`listen`]: serves a router on a Unix socket, with the peer's credential as identity, or on
//!   TCP.
//! * [`tokens`]: stores access tokens.
//! * `web`: who is signed in at the web interface; `site`: its files.
//! * [`webhook`]: posts alerts to an address of the operator's.
//!
//! The bodies of REST are [`ostler_api`]'s; [`ostler_interface`] makes them of the engine's types.
#![forbid(unsafe_code)]

mod app;
mod auth;
mod content_policy;
mod gzip;
mod in_flight;
mod limits;
pub mod listen;
mod options;
mod origin_check;
mod random_text;
mod rate_limit;
pub mod rest;
mod site;
pub mod tokens;
mod valid_response;
mod web;
pub mod webhook;

pub use app::{AppParts, app};
pub use in_flight::REQUESTS_PER_PRINCIPAL;
pub use options::{HttpAccess, HttpOptions};
pub use rate_limit::RateLimit;
pub use site::{WebFile, WebFiles};
pub use web::{LINK_MINUTES, WebAccess, WebLink, WebLinkError};
