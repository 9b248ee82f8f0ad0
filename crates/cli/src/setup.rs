//! What every verb works with.

use std::future::Future;

use crate::client::Client;
use crate::config::{Config, Environment, Flags};
use crate::daemon::Launch;
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
}

impl Setup {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub(crate) fn read(flags: &Flags) -> Result<Self, CommandError> {
        let env = Environment::of_process();
        let config = Config::load(flags, &env)?;
        let places = config.places();
        let launch = Launch::new(places.clone(), flags.named_file(&env));
        Ok(Self {
            config,
            env,
            places,
            launch,
        })
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
