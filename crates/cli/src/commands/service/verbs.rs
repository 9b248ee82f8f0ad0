//! The verbs of `ostler service`.

use clap::Subcommand;

use super::define::DefineArgs;
use super::detect::DetectArgs;
use super::down::DownArgs;
use super::import::ImportArgs;
use super::list::ServiceListArgs;
use super::logs::ServiceLogsArgs;
use super::start::{EnsureArgs, ServiceStartArgs};
use super::stop_restart::{DismissArgs, NamesArgs, ServiceRestartArgs, ServiceStopArgs};
use super::up::UpArgs;
use super::why::WhyArgs;

/// The verbs.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub(crate) enum ServiceVerb {
    /// Start what the workspace's ostler.toml defines, in order, and wait until it is ready
    Up(UpArgs),
    /// Stop what the workspace's ostler.toml defines, in reverse order
    Down(DownArgs),
    /// Start a command as a service and wait until it is ready
    Start(ServiceStartArgs),
    /// Reuse a service that lives and is well; start it where there is none
    Ensure(EnsureArgs),
    /// Stop services, those that depend on them first, and free their ports
    Stop(ServiceStopArgs),
    /// End what runs and start it anew at once, under the same id
    Restart(ServiceRestartArgs),
    /// List services
    #[command(visible_alias = "list")]
    Ps(ServiceListArgs),
    /// Show what a service printed
    #[command(mut_arg("id", |arg| arg.value_name("NAME").help("Which service")))]
    Logs(ServiceLogsArgs),
    /// Say why a service is where it is
    #[command(visible_alias = "status")]
    Why(WhyArgs),
    /// Say which service a command is, without starting it
    Detect(DetectArgs),
    /// Keep a definition under a name; `ostler service ensure NAME` starts it
    Define(Box<DefineArgs>),
    /// Make definitions of a Procfile, package.json or compose file
    Import(ImportArgs),
    /// Forget definitions; what runs goes on
    Forget(NamesArgs),
    /// Leave ended services out of lists, failed ones say; `ostler service ps --all` shows them
    Dismiss(DismissArgs),
}

/// What the verbs exit with, for people.
const EXIT_CODES: &str = "\
A service is named by its name or its id. A name holds within a workspace, which is that of the
nearest ostler.toml from here upwards; an id holds everywhere.

Exit codes of up, start, ensure and restart:
    0    ready, running with nothing to look at, or completed where others need that
    1    failed to become ready
    75   not ready in time; it is still running
    130  interrupted; it is still running
  and those of `ostler --help`.";
