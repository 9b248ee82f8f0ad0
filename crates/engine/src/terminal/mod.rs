//! Terminal sessions: screen contents and input.

mod cached_screen;
mod checkpoint_store;
mod device_reports;
mod events;
mod input;
pub(crate) mod page;
mod screen_cache;

pub use crate::settings::TERMINAL_VIEW_BYTES;
pub use events::{TerminalEvent, TerminalEvents};
pub(crate) use input::mode_independent_bytes;
pub use input::{TYPING_BYTES, TerminalInput, TerminalInputResult};
pub use page::{TERMINAL_VIEW_MAX_BYTES, TerminalPage, TerminalPageQuery};
pub use screen_cache::{
    SCREEN_CATCH_UP_BYTES, SCREEN_CATCH_UP_MS, SCREEN_UPKEEP_BYTES, SCREENS_LIVE,
};
pub(crate) use screen_cache::{ScreenCache, terminal_size};
