//! What every verb works with.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;

use crate::client::Client;
use crate::config::{Config, Environment, Flags};
use crate::daemon::{Launch, SecretVariables, is_secret};
use crate::error::CommandError;
use crate::paths::Places;

/// Configuration, places, and how to reach the daemon.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Everything that is set.
    pub(crate) config: Config,
    /// Our environment.
    pub(crate) env: Environment,
    /// Where state and sockets are.
    pub(crate) places: Places,
    /// How a daemon is started.
    pub(crate) launch: Launch,
    /// What of the configuration cannot be, where that was left out.
    pub(crate) problems: Vec<CommandError>,
}

impl Setup {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub(crate) fn read(flags: &Flags) -> Result<Self, CommandError> {
        let env = Environment::of_process();
        let config = Config::load(flags, &env)?;
        Ok(Self::of(flags, env, config, Vec::new()))
    }

    /// As [`Setup::read`], for a daemon that was started on demand: with the secrets that were
    /// handed over to it.
    ///
    /// # Errors
    /// As [`Setup::read`].
    pub(crate) fn read_handed_over(flags: &Flags) -> Result<Self, CommandError> {
        let env = Environment::of_process().with(SecretVariables::take_over());
        let config = Config::load(flags, &env)?;
        Ok(Self::of(flags, env, config, Vec::new()))
    }

    /// Reads what can be of the configuration, for verbs that say what is wrong with it.
    pub(crate) fn read_what_can_be(flags: &Flags) -> Self {
        let env = Environment::of_process();
        let (config, problems) = Config::load_what_can_be(flags, &env);
        Self::of(flags, env, config, problems)
    }

    fn of(flags: &Flags, env: Environment, config: Config, problems: Vec<CommandError>) -> Self {
        let places = config.places();
        let secrets = env.secrets(&config.secret_prefixes());
        forget(&config);
        let launch = Launch::new(places.clone(), flags.named_file(&env), secrets);
        Self {
            config,
            env,
            places,
            launch,
            problems,
        }
    }

    /// Tells what is wrong with the configuration; the exit code that goes with it, if any.
    pub(crate) fn tell_problems(&self) -> u8 {
        self.problems.iter().for_each(crate::report);
        self.problems.first().map_or(0, CommandError::exit_code)
    }

    /// Tells what the settings allow beyond what they name.
    pub(crate) fn tell_warnings(&self) {
        let warnings = self.config.warnings();
        warnings
            .iter()
            .for_each(|it| crate::tell(&format!("warning: {it}")));
    }

    /// A client of the daemon, started on demand.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.places.daemon_socket(), Some(self.launch.clone()))
    }

    /// A client of a daemon that must be running already.
    pub(crate) fn client_of_running(&self) -> Client {
        Client::new(self.places.daemon_socket(), None)
    }
}

/// Secrets are known by now; nobody is to read them in our environment.
fn forget(config: &Config) {
    let prefixes = config.secret_prefixes();
    let is_meant = |name: &[u8]| is_secret(OsStr::from_bytes(name), &prefixes);
    if let Err(error) = ostler_process::forget_variables(is_meant) {
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
