//! The files of the web interface. They hold nothing of anybody and need no token: a browser cannot
//! send one when it opens an address.
//!
//! * [`paths`]: which requests are for a file; pure.
//! * [`static_site`]: finds the file.
//! * [`directory`]: reads one of a directory, for development.
//! * [`notice`]: the page that says why there is no other.
//! * [`site_file`]: a file, and its response.

mod directory;
mod notice;
mod paths;
mod site_file;
mod static_site;

pub(crate) use static_site::StaticSite;
pub use static_site::{WebFile, WebFiles};
