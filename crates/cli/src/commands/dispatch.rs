//! From the typed verb to the file that does it.

use crate::args::{Cli, Verb};
use crate::commands;
use crate::config::Flags;
use crate::daemon::{self, How};
use crate::error::{CommandError, Outcome};
use crate::setup::Setup;

/// Does what was typed.
///
/// # Errors
/// Whatever the verb cannot do.
pub(crate) fn run(cli: Cli) -> Outcome {
    let mut flags = Flags::from(cli.places);
    if let Verb::Completions(args) = cli.verb {
        return commands::completions::run(&args);
    }
    if let Verb::Serve(args) = &cli.verb {
        flags.of_verb = args.values();
    }
    run_verb(&setup(&flags, &cli.verb)?, cli.verb)
}

/// What a verb works with. Verbs that say how things are say that too where the configuration
/// is broken, or the daemon serves something else.
///
/// # Errors
/// When the verb cannot be carried out with what is set.
fn setup(flags: &Flags, verb: &Verb) -> Result<Setup, CommandError> {
    if matches!(
        verb,
        Verb::Doctor(_) | Verb::Version(_) | Verb::Config(_) | Verb::Complete(_)
    ) {
        return Ok(Setup::read_what_can_be(flags));
    }
    let setup = if matches!(verb, Verb::Daemon) {
        Setup::read_handed_over(flags)?
    } else {
        Setup::read(flags)?
    };
    if !matches!(verb, Verb::Serve(_) | Verb::Daemon | Verb::Token(_)) {
        daemon::serves_our_state(&setup.places)?;
    }
    Ok(setup)
}

fn run_verb(setup: &Setup, mut verb: Verb) -> Outcome {
    if let Some(id) = id_of(&mut verb) {
        commands::id_alias::complete(setup, id)?;
    }
    match verb {
        Verb::Run(args) => commands::run::run(setup, args),
        Verb::Attach(args) => commands::attach::run(setup, args),
        Verb::Shell(args) => commands::shell::run(setup, args),
        Verb::Exec(args) => commands::exec::run(setup, args),
        Verb::Screen(args) => commands::screen::run(setup, &args),
        Verb::Send(args) => commands::send::run(setup, args),
        Verb::Resize(args) => commands::resize::run(setup, &args),
        Verb::Service(verb) => commands::service::run(setup, verb),
        Verb::Ps(args) => commands::ps::run(setup, args),
        Verb::Logs(args) => commands::logs::run(setup, args),
        Verb::Info(args) => commands::info::run(setup, &args),
        Verb::Stats(args) => commands::stats::run(setup, &args),
        Verb::Events(args) => commands::events::run(setup, &args),
        Verb::Stop(args) => commands::stop::run(setup, &args),
        Verb::Restart(args) => commands::restart::run(setup, &args),
        Verb::Pause(args) => commands::pause::run(setup, &args),
        Verb::Resume(args) => commands::resume::run(setup, &args),
        Verb::Doctor(args) => commands::doctor::run(setup, &args),
        Verb::Kill(args) => commands::kill::run(setup, &args),
        Verb::Wait(args) => commands::wait::run(setup, &args),
        Verb::Rm(args) => commands::rm::run(setup, &args),
        Verb::Clear(args) => commands::clear::run(setup, &args),
        Verb::Workspace(args) => commands::workspace::changes(setup, &args),
        Verb::Diff(args) => commands::workspace::diff(setup, &args),
        Verb::Commit(args) => commands::workspace::commit(setup, &args),
        Verb::Discard(args) => commands::workspace::discard(setup, &args),
        Verb::Export(args) => commands::export::run(setup, &args),
        Verb::Serve(_) => daemon::run(&setup.config, &setup.env, How::Foreground),
        Verb::Daemon => daemon::run(&setup.config, &setup.env, How::OnDemand),
        Verb::Token(verb) => commands::token::run(setup, &verb),
        Verb::Shutdown(_) => commands::shutdown::run(setup),
        Verb::Mcp(args) => commands::mcp::run(setup, args),
        Verb::Policy(verb) => commands::policy::run(setup, verb),
        Verb::Approve(args) => commands::approve::run(setup, &args),
        Verb::Approvals(args) => commands::approve::list(setup, &args),
        Verb::Config(verb) => commands::config::run(setup, &verb),
        Verb::Completions(args) => commands::completions::run(&args),
        Verb::Complete(args) => commands::complete::run(setup, &args),
        Verb::Version(args) => commands::version::run(setup, &args),
    }
}

/// The id of a verb that takes one; those that take several complete each.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "verbs without an id are the many, and new ones most likely too"
)]
fn id_of(verb: &mut Verb) -> Option<&mut String> {
    match verb {
        Verb::Attach(args) => Some(&mut args.id),
        Verb::Exec(args) => Some(&mut args.id),
        Verb::Screen(args) => Some(&mut args.id),
        Verb::Send(args) => Some(&mut args.id),
        Verb::Resize(args) => Some(&mut args.id),
        Verb::Logs(args) => Some(&mut args.id),
        Verb::Wait(args) => Some(&mut args.id),
        Verb::Workspace(args) | Verb::Discard(args) => Some(&mut args.id),
        Verb::Diff(args) => Some(&mut args.id),
        Verb::Commit(args) => Some(&mut args.which.id),
        Verb::Export(args) => Some(&mut args.id),
        Verb::Restart(args) => Some(&mut args.id),
        Verb::Events(args) => args.id.as_mut(),
        _ => None,
    }
}
