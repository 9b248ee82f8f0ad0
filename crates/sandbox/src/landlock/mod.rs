//! The second layer of isolation: landlock(7) with the same allow list as the file system view, so
//! that a hole in the mounts stays closed. `rights` lists what each version of the interface
//! supports, `rules` assigns rights to paths (pure), `install` restricts the calling thread.

#[expect(unsafe_code, reason = "landlock(7) between clone and exec")]
mod install;
pub mod rights;
mod rules;
#[cfg(test)]
mod tests;

pub use install::{abi, supported, try_rule, unavailable_reason};
pub use rules::{LandlockRuleset, PathRule, SYSTEM};
