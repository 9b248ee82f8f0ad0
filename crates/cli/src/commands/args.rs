//! The command line: one enum of verbs, each with the arguments that its file declares.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use ostler_model::suggestion::nearest;

use crate::commands;
use crate::config::ConfigFlags;

/// Runs, supervises and records commands for AI agents and the people who watch them.
#[derive(Debug, Parser)]
#[command(
    name = "ostler",
    version,
    arg_required_else_help = true,
    after_help = EXIT_CODES,
    propagate_version = false
)]
pub(crate) struct Cli {
    /// Where state lies and how things are configured.
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Directory of executions and their output
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Directory of the daemon's sockets
    #[arg(long, global = true, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Configuration file to read instead of the usual ones
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one configuration key; `ostler config explain` lists them
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl From<ConfigArgs> for ConfigFlags {
    fn from(args: ConfigArgs) -> Self {
        Self {
            file: args.config,
            state_dir: args.state_dir,
            runtime_dir: args.runtime_dir,
            set: args.set,
            verb_flags: Vec::new(),
        }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command; its output, signals and exit code are passed through
    Run(commands::run::RunArgs),
    /// Command templates: list and show them, run one, check a definition file
    #[command(subcommand)]
    Template(commands::template::TemplateVerb),
    /// Contexts: directories with options that the commands of a project share
    #[command(subcommand)]
    Context(commands::context::ContextVerb),
    /// Sit down at the terminal of a session
    Attach(commands::attach::AttachArgs),
    /// Start a shell in a terminal of its own; it goes on when you leave it
    Shell(commands::shell::ShellArgs),
    /// Run a command in a shell session and wait for its end
    Exec(commands::exec::ExecArgs),
    /// Show what is on the screen of a session
    Screen(commands::screen::ScreenArgs),
    /// Type into a session
    Send(commands::send::SendArgs),
    /// Give the terminal of a session another size
    Resize(commands::resize::ResizeArgs),
    /// Servers and watchers by name: start, wait until ready, restart, stop, say why
    #[command(subcommand, visible_alias = "svc")]
    Service(commands::service::ServiceVerb),
    /// List executions, newest first; the running ones unless asked for more
    Ps(commands::ps::PsArgs),
    /// Show the output of an execution
    Logs(commands::logs::LogsArgs),
    /// Show everything known of executions
    Info(commands::info::InfoArgs),
    /// Show what executions use: processor time, memory, processes
    Stats(commands::stats::StatsArgs),
    /// Show what runs and what it uses, redrawn each second: sorted by processor time, memory or age
    Top(commands::top::TopArgs),
    /// Search executions of the last months, also those whose output is gone
    History(commands::history::HistoryArgs),
    /// Show what happens to executions, as it happens
    Events(commands::events::EventsArgs),
    /// Stop executions: a polite request, then the kill of the whole tree
    Stop(commands::stop::StopArgs),
    /// Start the same command again, where it runs after stopping it; prints the new id
    Restart(commands::restart::RestartArgs),
    /// Freeze executions with everything they started
    Pause(commands::ids::IdListArgs),
    /// Let frozen executions go on
    Resume(commands::ids::IdListArgs),
    /// Send a signal to executions
    Kill(commands::kill::KillArgs),
    /// Wait for executions to end and exit with the exit code of the last, or for a service to be ready
    Wait(commands::wait::WaitArgs),
    /// Remove ended executions and their output
    ///
    /// Changes in the overlay of a workspace that were neither committed nor discarded go with them;
    /// which executions had any is told on standard error.
    Rm(commands::rm::RmArgs),
    /// Drop the output of executions up to now, also while they run
    Clear(commands::clear::ClearArgs),
    /// List what an execution changed in its overlay of the workspace
    Workspace(commands::workspace::WorkspaceArgs),
    /// Show that as a diff
    Diff(commands::workspace::DiffArgs),
    /// Put it in the workspace: all of it or, where files changed meanwhile, nothing
    Commit(commands::workspace::CommitArgs),
    /// Forget it
    Discard(commands::workspace::WorkspaceArgs),
    /// Write the output of an execution in another format
    Export(commands::export::ExportArgs),
    /// Show which tests failed and what compilers and linters reported in the output of an execution
    Report(commands::report::ReportArgs),
    /// Run the daemon in the foreground, with MCP and REST over HTTP
    Serve(commands::serve::ServeArgs),
    /// Make, list and take away the tokens of HTTP clients
    #[command(subcommand)]
    Token(commands::token::TokenVerb),
    /// End the daemon; what is durable goes on running
    Shutdown(commands::shutdown::ShutdownArgs),
    /// Find out what this machine can enforce, by doing it
    Doctor(commands::doctor::DoctorArgs),
    /// The images of containers: build, fetch, list
    #[command(subcommand)]
    Image(commands::image::ImageVerb),
    /// Speak MCP on standard input and output
    Mcp(commands::mcp::McpArgs),
    /// Tell what the command policy says, and check its rules
    #[command(subcommand)]
    Policy(commands::policy::PolicyVerb),
    /// Let a command run that the policy asks a person about; once, within ten minutes
    Approve(commands::approve::ApproveArgs),
    /// List the commands that wait for a person's word
    Approvals(commands::approve::ApprovalsArgs),
    /// List the questions that wait for an answer; answer, cancel and watch them
    Interactions(commands::interactions::InteractionsArgs),
    /// Find out whether the audit log was changed
    #[command(subcommand)]
    Audit(commands::audit::AuditVerb),
    /// Show how things are configured
    #[command(subcommand)]
    Config(commands::config::ConfigVerb),
    /// Print a completion script
    Completions(commands::completions::CompletionsArgs),
    /// Print the version, also that of the daemon where one runs
    Version(commands::version::VersionArgs),
    /// What may stand next on a command line, for completion scripts.
    #[command(name = "__complete", hide = true)]
    Complete(commands::complete::CompleteArgs),
    /// The daemon, started on demand.
    #[command(name = "__daemon", hide = true)]
    Daemon,
}

/// The table of exit codes for people; a test compares it with that of the model.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  run, wait, attach, shell and exec exit with the command's own code, or 128 + N when signal N ended it;
  124 when its time ran out, 125 when it was lost, 126 when it could not be executed,
  127 when the program was not found. Otherwise:
    0    done
    64   invalid argument (value_error, template_error)
    66   no such execution, session or context, or not yours (process_not_found)
    69   the daemon cannot be reached or started (initialization_error)
    70   our mistake (internal_error)
    71   refused as things are: by the system, so that a start, signal or clean failed
         (process_control_error), about a question, also an unknown one (interaction_error),
         or by a service (service_error)
    74   storage cannot be read or written, or output that was to be shown is lost (storage_error)
    75   try again later (process_timeout, quota_exceeded)
    77   not allowed (security_error, permission_error)
    78   bad configuration (environment_error)
    124  a time limit ended the command (command_timeout)
    141  the reader of the output went away";

/// The same error; for an unknown verb, with the most similar one as a suggestion.
pub(crate) fn suggest_verb(
    mut error: clap::Error,
    typed: impl Iterator<Item = OsString>,
) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let unknown = unknown.clone();
    let root = Cli::command();
    let mut group = &root;
    for word in typed.take_while(|word| *word != *unknown) {
        group = group.find_subcommand(&word).unwrap_or(group);
    }
    let verbs = group.get_subcommands().filter(|verb| !verb.is_hide_set());
    let names: Vec<&str> = verbs
        .flat_map(|verb| verb.get_visible_aliases().chain([verb.get_name()]))
        .collect();
    if let Some(near) = nearest(&unknown, names) {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_exit_code_is_documented() {
        for row in &ostler_model::error_code::ERROR_CODES {
            let is_listed = EXIT_CODES.contains(&format!("    {} ", row.exit));
            assert!(is_listed, "{} exits with {}", row.name, row.exit);
        }
    }
}
