//! The second wall: landlock(7) with the same allow list as the view, so that a hole in the
//! mounts is still shut. `rights` is what each version of the interface knows, `rules`
//! which path gets which rights (pure), `install` puts them on the calling thread.

#[expect(unsafe_code, reason = "landlock(7) between clone and exec")]
mod install;
pub mod rights;
mod rules;
#[cfg(test)]
mod tests;

pub use install::{abi, supported, try_rule, unavailable_reason};
pub use rules::{LandlockRuleset, PathRule, SYSTEM};
