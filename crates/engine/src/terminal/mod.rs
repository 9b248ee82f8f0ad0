//! Terminal sessions: screen contents, input, and the writer's lease.

mod api;
mod cached_screen;
mod checkpoint_store;
pub(crate) mod device_reports;
mod events;
mod input;
mod lease;
mod page;
mod readers;
mod screen_cache;
mod timeline;

pub use crate::settings::TERMINAL_VIEW_BYTES;
pub(crate) use cached_screen::CachedScreen;
pub use events::{TerminalEvent, TerminalEvents};
pub use input::{TYPING_BYTES, TerminalInput, TerminalInputResult};
pub(crate) use lease::WriterLease;
pub use lease::{LEASE_NAME_BYTES, Lease, LeaseHolder, LeaseId};
pub use page::{TERMINAL_VIEW_MAX_BYTES, TerminalPage, TerminalPageQuery};
pub(crate) use readers::OpenReaders;
pub(crate) use screen_cache::ScreenCache;
pub use screen_cache::{
    SCREEN_CATCH_UP_BYTES, SCREEN_CATCH_UP_MS, SCREEN_UPKEEP_BYTES, SCREENS_LIVE,
};
pub(crate) use timeline::Timeline;
