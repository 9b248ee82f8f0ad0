//! Terminal sessions (C): what is on the screen, what is typed, who types.

pub(crate) mod answers;
mod events;
mod facade;
mod lease;
mod page;
mod readers;
mod screens;
mod seat;
mod store;
mod turns;
mod typing;

pub use events::{TerminalEvent, TerminalEvents};
pub(crate) use lease::Leases;
pub use lease::{LEASE_NAME_BYTES, Lease, LeaseHolder, LeaseId};
pub use page::{TERMINAL_VIEW_BYTES, TERMINAL_VIEW_MAX_BYTES, TerminalPage, TerminalQuery};
pub(crate) use readers::Readers;
pub(crate) use screens::Screens;
pub use screens::{SCREEN_CATCH_UP_BYTES, SCREEN_CATCH_UP_MS, SCREEN_UPKEEP_BYTES, SCREENS_LIVE};
pub(crate) use seat::Seat;
pub(crate) use turns::Turns;
pub use typing::{TYPING_BYTES, Typed, Typing};
