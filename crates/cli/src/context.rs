//! What every verb works with.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;

use crate::client::DaemonClient;
use crate::config::{Config, ConfigFlags, ProcessEnv};
use crate::daemon::{DaemonLauncher, SecretVariables, is_secret};
use crate::error::CommandError;
use crate::paths::Dirs;

/// Configuration, places, and how to reach the daemon.
#[derive(Debug)]
pub(crate) struct CliContext {
    /// Everything that is set.
    pub(crate) config: Config,
    /// Our environment.
    pub(crate) env: ProcessEnv,
    /// Where state and sockets are.
    pub(crate) dirs: Dirs,
    /// How a daemon is started.
    pub(crate) launch: DaemonLauncher,
    /// What of the configuration cannot be, where that was left out.
    pub(crate) problems: Vec<CommandError>,
}

impl CliContext {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub(crate) fn load(flags: &ConfigFlags) -> Result<Self, CommandError> {
        let env = ProcessEnv::from_process();
        let config = Config::load(flags, &env)?;
        Ok(Self::new(flags, env, config, Vec::new()))
    }

    /// As [`CliContext::load`], for a daemon that was started on demand: with the secrets that were
    /// handed over to it.
    ///
    /// # Errors
    /// As [`CliContext::load`].
    pub(crate) fn load_with_handover(flags: &ConfigFlags) -> Result<Self, CommandError> {
        let env = ProcessEnv::from_process().with(SecretVariables::from_stdin());
        let config = Config::load(flags, &env)?;
        Ok(Self::new(flags, env, config, Vec::new()))
    }

    /// Reads what can be of the configuration, for verbs that say what is wrong with it.
    pub(crate) fn load_lossy(flags: &ConfigFlags) -> Self {
        let env = ProcessEnv::from_process();
        let (config, problems) = Config::load_lossy(flags, &env);
        Self::new(flags, env, config, problems)
    }

    fn new(
        flags: &ConfigFlags,
        env: ProcessEnv,
        config: Config,
        problems: Vec<CommandError>,
    ) -> Self {
        let dirs = config.dirs();
        let secrets = env.secrets(&config.secret_prefixes());
        clear_secret_variables(&config);
        let launch = DaemonLauncher::new(dirs.clone(), flags.config_file(&env), secrets);
        Self {
            config,
            env,
            dirs,
            launch,
            problems,
        }
    }

    /// Tells what is wrong with the configuration; the exit code that goes with it, if any.
    pub(crate) fn report_problems(&self) -> u8 {
        self.problems.iter().for_each(crate::print_error);
        self.problems.first().map_or(0, CommandError::exit_code)
    }

    /// Tells what the settings allow beyond what they name.
    pub(crate) fn report_warnings(&self) {
        let warnings = self.config.warnings();
        warnings
            .iter()
            .for_each(|it| crate::print_note(&format!("warning: {it}")));
    }

    /// A client of the daemon, started on demand.
    pub(crate) fn client(&self) -> DaemonClient {
        DaemonClient::new(self.dirs.daemon_socket(), Some(self.launch.clone()))
    }

    /// A client of a daemon that must be running already.
    pub(crate) fn running_daemon_client(&self) -> DaemonClient {
        DaemonClient::new(self.dirs.daemon_socket(), None)
    }
}

/// Secrets are known by now; nobody is to read them in our environment.
fn clear_secret_variables(config: &Config) {
    let prefixes = config.secret_prefixes();
    let is_secret_name = |name: &[u8]| is_secret(OsStr::from_bytes(name), &prefixes);
    if let Err(error) = ostler_process::scrub_variables(is_secret_name) {
        tracing::debug!(%error, "secrets stay in the environment");
    }
}

/// Runs `future` on this thread. Reads of standard input that are still blocked when it is
/// ready are left behind.
///
/// # Errors
/// Those of the future, and when no runtime can be made.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::daemon(format!("no runtime: {error}")))?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}
