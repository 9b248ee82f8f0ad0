//! Dispatch of the parsed verb to the file that carries it out.

use super::ServiceVerb;
use super::{define, detect, down, import, list, logs, start, stop_restart, up, why};
use crate::context::CliContext;
use crate::error::CommandResult;

/// Runs the verb.
///
/// # Errors
/// The errors of the verb.
pub(crate) fn run(context: &CliContext, verb: ServiceVerb) -> CommandResult {
    match verb {
        ServiceVerb::Up(args) => up::run(context, args),
        ServiceVerb::Down(args) => down::run(context, &args),
        ServiceVerb::Start(args) => start::start(context, args),
        ServiceVerb::Ensure(args) => start::ensure(context, args),
        ServiceVerb::Stop(args) => stop_restart::stop(context, &args),
        ServiceVerb::Restart(args) => stop_restart::restart(context, &args),
        ServiceVerb::Ps(args) => list::run(context, &args),
        ServiceVerb::Logs(args) => logs::run(context, args),
        ServiceVerb::Why(args) => why::run(context, &args),
        ServiceVerb::Detect(args) => detect::run(context, args),
        ServiceVerb::Define(args) => define::define(context, *args),
        ServiceVerb::Import(args) => import::run(context, &args),
        ServiceVerb::Forget(args) => define::forget(context, &args),
        ServiceVerb::Dismiss(args) => stop_restart::dismiss(context, &args),
    }
}
