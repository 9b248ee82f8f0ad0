//! One connection: opened, prepared for its role, and bounded in time.

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, Statement};

use super::failure::Failure;
use super::schema;
use super::settings::PostgresSettings;

/// The longest duration of a search, as SQLite's.
pub(super) const SEARCH_SECONDS: u64 = 5;
/// How long a reader waits for an answer: longer than the server works on it.
const READ_LIMIT: Duration = Duration::from_secs(SEARCH_SECONDS + 2);
/// The longest duration of a statement that writes.
const WRITE_SECONDS: u64 = 10;
/// How long the writer waits for a transaction.
const WRITE_LIMIT: Duration = Duration::from_secs(WRITE_SECONDS + 5);
/// How long a statement waits for a lock that another session holds.
const LOCK_SECONDS: u64 = 2;
/// The longest duration of a connection attempt.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the tables may take to be made.
const MIGRATE_LIMIT: Duration = Duration::from_secs(60);
/// What the server shows in its list of sessions.
const APPLICATION: &str = "ostler history";

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Folds the ledger; there is one.
    Writer,
    /// Answers queries.
    Reader,
}

impl Role {
    const fn limit(self) -> Duration {
        match self {
            Self::Writer => WRITE_LIMIT,
            Self::Reader => READ_LIMIT,
        }
    }

    /// The settings of the session. A power failure may cost the last transactions, which are
    /// folded again; the fold uses keys only, whatever the statistics of a new table say.
    fn session(self, settings: &PostgresSettings) -> String {
        let (seconds, more) = match self {
            Self::Writer => (
                WRITE_SECONDS,
                "SET synchronous_commit = off; SET enable_seqscan = off;",
            ),
            Self::Reader => (SEARCH_SECONDS, "SET default_transaction_read_only = on;"),
        };
        format!(
            "SET search_path TO \"{}\"; SET statement_timeout = '{seconds}s'; \
             SET lock_timeout = '{LOCK_SECONDS}s'; \
             SET idle_in_transaction_session_timeout = '60s'; {more}",
            settings.schema.as_str()
        )
    }
}

/// A connection with the runtime that its socket belongs to.
#[derive(Debug)]
pub(super) struct Connection {
    session: Session,
    role: Role,
    runtime: SocketRuntime,
}

/// The client of a connection, and what it has prepared.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

/// Prepared statements by their text; the texts are a few constants.
#[derive(Debug, Default)]
pub(super) struct Statements(HashMap<&'static str, Statement>);

impl Statements {
    /// The prepared statement.
    pub(super) async fn get(
        &mut self,
        client: &tokio_postgres::Transaction<'_>,
        sql: &'static str,
    ) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.0.get(sql) {
            return Ok(statement.clone());
        }
        let statement = client.prepare(sql).await?;
        self.0.insert(sql, statement.clone());
        Ok(statement)
    }
}

impl Connection {
    /// Connects. A writer makes the tables and takes the rows of the ledger for itself.
    pub(super) fn open(
        settings: &PostgresSettings,
        role: Role,
        closing: &watch::Sender<bool>,
    ) -> Result<Self, Failure> {
        let runtime = SocketRuntime::new()?;
        let mut config = settings.address.config().clone();
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        config.application_name(APPLICATION);
        if let Some(source) = &settings.password {
            config.password(source.password().map_err(Failure::unusable)?);
        }
        let client = runtime.run(CONNECT_LIMIT, closing, async {
            let (client, connection) = config.connect(NoTls).await?;
            // It ends with the runtime, or when the server cuts it: requests then fail.
            let socket_task = tokio::runtime::Handle::current().spawn(connection);
            drop(socket_task);
            client.batch_execute(&role.session(settings)).await?;
            Ok(client)
        })?;
        let mut session = Session {
            client,
            statements: Statements::default(),
        };
        if role == Role::Writer {
            let prepare = schema::prepare(&mut session.client, settings);
            runtime.run(MIGRATE_LIMIT, closing, prepare)?;
        }
        Ok(Self {
            session,
            role,
            runtime,
        })
    }

    /// Performs one action within the time of the role.
    pub(super) fn run<T>(
        &mut self,
        closing: &watch::Sender<bool>,
        action: impl AsyncFnOnce(&mut Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let action = action(&mut self.session);
        self.runtime.run(self.role.limit(), closing, action)
    }
}

/// The runtime of one socket, which works while somebody waits for an answer.
#[derive(Debug)]
struct SocketRuntime(Option<Runtime>);

impl SocketRuntime {
    fn new() -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::unusable(error.to_string()))?;
        Ok(Self(Some(runtime)))
    }

    /// Waits for the action, for as long as is allowed, or until the store is closed.
    fn run<T>(
        &self,
        limit: Duration,
        closing: &watch::Sender<bool>,
        action: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(runtime) = &self.0 else {
            return Err(Failure::Closing);
        };
        let mut closing = closing.subscribe();
        runtime.block_on(async {
            tokio::select! {
                result = timeout(limit, action) => result.unwrap_or(Err(Failure::NoAnswer)),
                _ = closing.wait_for(|is_closing| *is_closing) => Err(Failure::Closing),
            }
        })
    }
}

/// Closes the socket. The default would wait for threads, which a worker of another runtime must
/// not, and the last owner of the store may be one.
impl Drop for SocketRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
