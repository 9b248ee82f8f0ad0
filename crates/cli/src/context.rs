//! The context of every verb.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;

use crate::client::DaemonClient;
use crate::config::{Config, ConfigFlags};
use crate::daemon::DaemonLauncher;
use crate::error::CommandError;
use crate::paths::Dirs;
use crate::process_env::ProcessEnv;
use crate::secret_variables::{SecretVariables, is_secret};

/// The configuration, directories, and how to reach the daemon.
#[derive(Debug)]
pub(crate) struct CliContext {
    pub(crate) config: Config,
    /// The environment of this process.
    pub(crate) env: ProcessEnv,
    /// The state and the runtime directory.
    pub(crate) dirs: Dirs,
    /// How to start a daemon.
    pub(crate) launch: DaemonLauncher,
    /// Errors of the configuration, where invalid values were left out.
    pub(crate) problems: Vec<CommandError>,
}

impl CliContext {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first invalid value.
    pub(crate) fn load(flags: &ConfigFlags) -> Result<Self, CommandError> {
        let env = ProcessEnv::from_process();
        let config = Config::load(flags, &env)?;
        Ok(Self::new(flags, env, config, Vec::new()))
    }

    /// As [`CliContext::load`], for a daemon that was started on demand: with the secrets that were
    /// passed to it.
    ///
    /// # Errors
    /// As [`CliContext::load`].
    pub(crate) fn load_with_handover(flags: &ConfigFlags) -> Result<Self, CommandError> {
        let env = ProcessEnv::from_process().with(SecretVariables::from_stdin());
        let config = Config::load(flags, &env)?;
        Ok(Self::new(flags, env, config, Vec::new()))
    }

    /// Reads the valid part of the configuration, for verbs that report its errors.
    pub(crate) fn load_lossy(flags: &ConfigFlags) -> Self {
        let env = ProcessEnv::from_process();
        let (config, problems) = Config::load_lossy(flags, &env);
        Self::new(flags, env, config, problems)
    }

    /// That of the daemon itself.
    pub(crate) fn of_daemon(config: Config, env: ProcessEnv) -> Self {
        let dirs = config.dirs();
        let launch = DaemonLauncher::new(dirs.clone(), None, SecretVariables::default());
        Self {
            config,
            env,
            dirs,
            launch,
            problems: Vec::new(),
        }
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
        let launch = DaemonLauncher::new(dirs.clone(), flags.config_file(&env), secrets)
            .with_assignments(config.resolved_assignments(flags));
        Self {
            config,
            env,
            dirs,
            launch,
            problems,
        }
    }

    /// Reports errors of the configuration; returns the exit code for them, 0 if there is none.
    pub(crate) fn report_problems(&self) -> u8 {
        self.problems.iter().for_each(crate::print_error);
        self.problems.first().map_or(0, CommandError::exit_code)
    }

    /// Reports settings that allow more than they name.
    pub(crate) fn report_warnings(&self) {
        let warnings = self.config.warnings();
        warnings
            .iter()
            .for_each(|it| crate::print_note(&format!("warning: {it}")));
    }

    /// A client of the daemon, which is started on demand.
    pub(crate) fn client(&self) -> DaemonClient {
        DaemonClient::new(self.dirs.daemon_socket(), Some(self.launch.clone()))
    }

    /// A client of a daemon that must be running already.
    pub(crate) fn running_daemon_client(&self) -> DaemonClient {
        DaemonClient::new(self.dirs.daemon_socket(), None)
    }
}

/// Removes secrets from the environment of this process, once they are read.
fn clear_secret_variables(config: &Config) {
    let prefixes = config.secret_prefixes();
    let is_secret_name = |name: &[u8]| is_secret(OsStr::from_bytes(name), &prefixes);
    if let Err(error) = ostler_sys::environ::scrub_variables(is_secret_name) {
        tracing::debug!(%error, "secrets stay in the environment");
    }
}

/// Runs `future` on this thread. Pending reads of standard input are abandoned when it is ready.
///
/// # Errors
/// The errors of the future, and when no runtime can be created.
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
