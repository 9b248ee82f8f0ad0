//! From the typed verb to the file that does it.

use super::ServiceVerb;
use super::{control, define, detect, down, import, list, logs, start, up, why};
use crate::error::Outcome;
use crate::setup::Setup;

/// Does what was typed.
///
/// # Errors
/// Whatever the verb cannot do.
pub(crate) fn run(setup: &Setup, verb: ServiceVerb) -> Outcome {
    match verb {
        ServiceVerb::Up(args) => up::run(setup, args),
        ServiceVerb::Down(args) => down::run(setup, &args),
        ServiceVerb::Start(args) => start::start(setup, args),
        ServiceVerb::Ensure(args) => start::ensure(setup, args),
        ServiceVerb::Stop(args) => control::stop(setup, &args),
        ServiceVerb::Restart(args) => control::restart(setup, &args),
        ServiceVerb::Ps(args) => list::run(setup, &args),
        ServiceVerb::Logs(args) => logs::run(setup, args),
        ServiceVerb::Why(args) => why::run(setup, &args),
        ServiceVerb::Detect(args) => detect::run(setup, args),
        ServiceVerb::Define(args) => define::define(setup, *args),
        ServiceVerb::Import(args) => import::run(setup, &args),
        ServiceVerb::Forget(args) => define::forget(setup, &args),
        ServiceVerb::Dismiss(args) => control::dismiss(setup, &args),
    }
}
