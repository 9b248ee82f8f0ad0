//! Who is signed in at the web interface.
//!
//! * [`credentials`]: a token in two halves, the cookie and the page key.
//! * [`cookie`]: the cookie's name, and what sets and deletes it.
//! * [`codes`], [`sign_in_limit`]: the codes of links, and the limit of sign-ins that fail; pure.
//! * [`session_change`]: the requests that sign in and out, which have no credentials yet.
//! * [`access`]: links, signing in and out, for the routes in [`rest`](crate::rest).

mod access;
mod codes;
mod cookie;
mod credentials;
mod session_change;
mod sign_in_limit;

pub(crate) use access::{PageSession, SignInError, SignInOutcome, SignInSecret};
pub use access::{WebAccess, WebLink, WebLinkError};
pub use codes::LINK_MINUTES;
pub(crate) use cookie::{SessionCookie, cookie_name};
pub(crate) use credentials::{PAGE_SUBPROTOCOL, PageCredentials, remove_credentials};
pub(crate) use session_change::{SessionChange, is_session_change, session_change};
