//! The built files of the web interface, which is written in `web/`, as the build script embeds
//! them: compressed, with the hash of their content. Where the page was not built, why not.
//!
//! `build.rs` decides by `page_source.rs` whether the page is built first.
#![forbid(unsafe_code)]

mod embedded;
#[cfg(test)]
mod page_source;

pub use embedded::{ABSENT, EmbeddedFile, FILES};
