//! Dispatch of the parsed verb to the file that carries it out.

use std::sync::Arc;

use super::args::{Cli, Verb};
use crate::commands;
use crate::config::ConfigFlags;
use crate::context::CliContext;
use crate::daemon::{self, StartMode};
use crate::doctor::DoctorExaminer;
use crate::error::{CommandError, CommandResult};

/// Runs the verb.
///
/// # Errors
/// The errors of the verb.
pub(crate) fn run(cli: Cli) -> CommandResult {
    let mut flags = ConfigFlags::from(cli.config);
    if let Verb::Completions(args) = cli.verb {
        return commands::completions::run(&args);
    }
    if let Verb::Serve(args) = &cli.verb {
        flags.verb_flags = args.values();
    }
    run_verb(&load_context(&flags, &cli.verb)?, cli.verb)
}

/// The context of a verb. Verbs that report the configuration or the daemon work even if the
/// configuration is invalid, or the daemon serves another state directory.
///
/// # Errors
/// When the verb cannot run with this configuration.
fn load_context(flags: &ConfigFlags, verb: &Verb) -> Result<CliContext, CommandError> {
    if matches!(
        verb,
        Verb::Doctor(_) | Verb::Version(_) | Verb::Config(_) | Verb::Complete(_)
    ) {
        return Ok(CliContext::load_lossy(flags));
    }
    let context = if matches!(verb, Verb::Daemon) {
        CliContext::load_with_handover(flags)?
    } else {
        CliContext::load(flags)?
    };
    if !matches!(
        verb,
        Verb::Serve(_) | Verb::Daemon | Verb::Token(_) | Verb::Audit(_) | Verb::Image(_)
    ) {
        daemon::check_state_dir(&context.dirs)?;
        if !matches!(verb, Verb::Shutdown(_)) && !is_in_process(verb) {
            daemon::check_settings(&context.config, &context.dirs)?;
        }
    }
    Ok(context)
}

/// Whether the engine runs in this process.
const fn is_in_process(verb: &Verb) -> bool {
    matches!(verb, Verb::Run(args) if args.flags.no_daemon)
        || matches!(verb, Verb::Mcp(args) if args.no_daemon)
}

fn run_verb(context: &CliContext, mut verb: Verb) -> CommandResult {
    if let Some(id) = id_argument(&mut verb) {
        commands::id_alias::resolve_in_place(context, id)?;
    }
    match verb {
        Verb::Run(args) => commands::run::run(context, args),
        Verb::Template(verb) => commands::template::run(context, verb),
        Verb::Context(verb) => commands::context::run(context, verb),
        Verb::Attach(args) => commands::attach::run(context, args),
        Verb::Shell(args) => commands::shell::run(context, args),
        Verb::Exec(args) => commands::exec::run(context, args),
        Verb::Screen(args) => commands::screen::run(context, &args),
        Verb::Send(args) => commands::send::run(context, args),
        Verb::Resize(args) => commands::resize::run(context, &args),
        Verb::Service(verb) => commands::service::run(context, verb),
        Verb::Ps(args) => commands::ps::run(context, args),
        Verb::Logs(args) => commands::logs::run(context, args),
        Verb::Info(args) => commands::info::run(context, &args),
        Verb::Stats(args) => commands::stats::run(context, &args),
        Verb::Top(args) => commands::top::run(context, &args),
        Verb::History(args) => commands::history::run(context, &args),
        Verb::Events(args) => commands::events::run(context, &args),
        Verb::Stop(args) => commands::stop::run(context, &args),
        Verb::Restart(args) => commands::restart::run(context, &args),
        Verb::Pause(args) => commands::pause::run(context, &args),
        Verb::Resume(args) => commands::resume::run(context, &args),
        Verb::Doctor(args) => commands::doctor::run(context, &args),
        Verb::Image(verb) => commands::image::run(context, verb),
        Verb::Kill(args) => commands::kill::run(context, &args),
        Verb::Wait(args) => commands::wait::run(context, &args),
        Verb::Rm(args) => commands::rm::run(context, &args),
        Verb::Clear(args) => commands::clear::run(context, &args),
        Verb::Workspace(args) => commands::workspace::changes(context, &args),
        Verb::Diff(args) => commands::workspace::diff(context, &args),
        Verb::Commit(args) => commands::workspace::commit(context, &args),
        Verb::Discard(args) => commands::workspace::discard(context, &args),
        Verb::Export(args) => commands::export::run(context, &args),
        Verb::Report(args) => commands::report::run(context, &args),
        Verb::Serve(_) => run_daemon(context, StartMode::Foreground),
        Verb::Daemon => run_daemon(context, StartMode::OnDemand),
        Verb::Token(verb) => commands::token::run(context, &verb),
        Verb::Shutdown(_) => commands::shutdown::run(context),
        Verb::Mcp(args) => commands::mcp::run(context, args),
        Verb::Policy(verb) => commands::policy::run(context, verb),
        Verb::Approve(args) => commands::approve::run(context, &args),
        Verb::Approvals(args) => commands::approve::list(context, &args),
        Verb::Interactions(args) => commands::interactions::run(context, &args),
        Verb::Audit(verb) => commands::audit::run(context, &verb),
        Verb::Config(verb) => commands::config::run(context, &verb),
        Verb::Completions(args) => commands::completions::run(&args),
        Verb::Complete(args) => commands::complete::run(context, &args),
        Verb::Version(args) => commands::version::run(context, &args),
    }
}

/// The id of a verb that takes one; verbs that take several resolve each of them.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "verbs without an id are the many, and new ones most likely too"
)]
fn id_argument(verb: &mut Verb) -> Option<&mut String> {
    match verb {
        Verb::Attach(args) => Some(&mut args.id),
        Verb::Exec(args) => Some(&mut args.id),
        Verb::Screen(args) => Some(&mut args.id),
        Verb::Send(args) => Some(&mut args.id),
        Verb::Resize(args) => Some(&mut args.id),
        Verb::Logs(args) => Some(&mut args.id),
        Verb::Workspace(args) | Verb::Discard(args) => Some(&mut args.id),
        Verb::Diff(args) => Some(&mut args.id),
        Verb::Commit(args) => Some(&mut args.workspace.id),
        Verb::Export(args) => Some(&mut args.id),
        Verb::Report(args) => Some(&mut args.id),
        Verb::Restart(args) => Some(&mut args.id),
        Verb::Events(args) => args.id.as_mut(),
        Verb::History(args) => args.id_mut(),
        _ => None,
    }
}

fn run_daemon(context: &CliContext, mode: StartMode) -> CommandResult {
    let (config, env) = (&context.config, &context.env);
    let examiner = Arc::new(DoctorExaminer::new(config, env));
    daemon::run(config, env, mode, examiner)
}
