//! The tables, and the steps from each version of them to the next.

use sha2::{Digest as _, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use super::failure::Failure;
use super::settings::PostgresSettings;
use crate::error::StoreError;

/// The step to version `index + 1`. A step is never changed once it has been released.
const MIGRATIONS: &[&str] = &[CREATE_TABLES];

/// The newest version: the number of steps.
pub(super) const VERSION: i64 = 1;
const _: () = assert!(VERSION.cast_unsigned() == MIGRATIONS.len() as u64);

/// Rows belong to a ledger, so that several daemons share the tables. Names of principals, projects
/// and sessions are found by a hash: a name may be longer than what an index takes.
const CREATE_TABLES: &str = "
-- How far each ledger is folded. One without identity was reset: its rows are being removed.
CREATE TABLE ledger (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity TEXT UNIQUE,
    position BIGINT NOT NULL DEFAULT 0,
    hash TEXT NOT NULL DEFAULT ''
);
CREATE TABLE execution (
    ledger BIGINT NOT NULL,
    position BIGINT NOT NULL,
    id BYTEA NOT NULL,
    short_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    principal_hash BIGINT NOT NULL,
    project TEXT,
    project_hash BIGINT,
    session TEXT,
    session_hash BIGINT,
    task TEXT,
    channel TEXT NOT NULL,
    client TEXT NOT NULL,
    command TEXT NOT NULL,
    directory TEXT NOT NULL,
    labels JSONB NOT NULL,
    level TEXT NOT NULL,
    in_force TEXT NOT NULL,
    policy TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    started_us BIGINT,
    ended_us BIGINT,
    cause TEXT,
    code INTEGER,
    signal INTEGER,
    attempts BIGINT NOT NULL DEFAULT 0,
    user_us BIGINT,
    system_us BIGINT,
    max_rss_bytes BIGINT,
    output_bytes BIGINT,
    prompts BIGINT,
    output_lines BIGINT,
    peaks TEXT,
    fingerprint BIGINT,
    PRIMARY KEY (ledger, position),
    UNIQUE (ledger, id)
);
CREATE INDEX execution_principal ON execution (ledger, principal_hash, position);
CREATE INDEX execution_project ON execution (ledger, principal_hash, project_hash, position);
CREATE INDEX execution_session ON execution (ledger, principal_hash, session_hash, position);
CREATE INDEX execution_failed ON execution (ledger, principal_hash, position)
    WHERE cause IS NOT NULL AND NOT (cause = 'exited' AND code IS NOT DISTINCT FROM 0);
CREATE INDEX execution_running ON execution (ledger, principal_hash, position)
    WHERE cause IS NULL;
CREATE INDEX execution_short_id ON execution (ledger, short_id);
-- Rows are appended in the order of their times.
CREATE INDEX execution_created ON execution USING brin (created_us);
CREATE INDEX execution_fingerprint
    ON execution (ledger, principal_hash, fingerprint, position);
";

/// The lock under which tables are made: one daemon at a time.
const MIGRATION_LOCK: i64 = 0x6f73_746c_6572;

/// Brings the tables up to date, and takes the rows of the ledger for this connection alone.
pub(super) async fn prepare(
    client: &mut Client,
    settings: &PostgresSettings,
) -> Result<(), Failure> {
    let encoding: String = client
        .query_one("SHOW server_encoding", &[])
        .await?
        .try_get(0)?;
    if encoding != "UTF8" {
        return Err(Failure::unusable(format!(
            "the database has the encoding {encoding}; the history needs UTF8"
        )));
    }
    if version(client, settings).await? != VERSION {
        migrate(client, settings).await?;
    }
    let lock = client
        .query_one("SELECT pg_try_advisory_lock($1)", &[&lock_key(settings)])
        .await?;
    if !lock.try_get::<_, bool>(0)? {
        return Err(Failure::unusable(
            "another daemon writes the rows of this ledger: is the state directory a copy of its \
             one? Then remove history.id in one of them",
        ));
    }
    let identity = &settings.ledger;
    client
        .execute(
            "INSERT INTO ledger (identity) VALUES ($1) ON CONFLICT DO NOTHING",
            &[identity],
        )
        .await?;
    index_texts(client).await
}

/// Whether the tables have the version that this program knows.
pub(super) async fn check(client: &Client, settings: &PostgresSettings) -> Result<(), Failure> {
    let sql = "SELECT coalesce(max(version), 0) FROM migration";
    let rows = client.query_typed(sql, &[]).await;
    let found = match rows {
        Ok(rows) => rows.first().map_or(Ok(0), |row| row.try_get(0))?,
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => 0,
        Err(error) => return Err(error.into()),
    };
    match found {
        VERSION => Ok(()),
        found if found > VERSION => Err(newer(found, settings).into()),
        _ => Err(Failure::NoTables),
    }
}

async fn version(client: &impl GenericClient, settings: &PostgresSettings) -> Result<i64, Failure> {
    let table = format!("\"{}\".migration", settings.schema.as_str());
    let row = client
        .query_one("SELECT to_regclass($1) IS NOT NULL", &[&table])
        .await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let sql = "SELECT coalesce(max(version), 0) FROM migration";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

async fn migrate(client: &mut Client, settings: &PostgresSettings) -> Result<(), Failure> {
    let schema = settings.schema.as_str();
    let transaction = client.transaction().await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await?;
    // Read again under the lock: another daemon may have migrated meanwhile.
    let found = version(&transaction, settings).await?;
    if found > VERSION {
        return Err(newer(found, settings).into());
    }
    let exists = transaction
        .query_one("SELECT to_regnamespace($1) IS NOT NULL", &[&schema])
        .await?;
    // Whoever may use a schema need not be allowed to make one.
    if !exists.try_get::<_, bool>(0)? {
        let create = format!("CREATE SCHEMA \"{schema}\"");
        transaction.batch_execute(&create).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS migration (version BIGINT PRIMARY KEY)";
    transaction.batch_execute(table).await?;
    let done = usize::try_from(found).unwrap_or(MIGRATIONS.len());
    for (index, step) in MIGRATIONS.iter().enumerate().skip(done) {
        transaction.batch_execute(step).await?;
        let version = i64::try_from(index + 1).unwrap_or(VERSION);
        transaction
            .execute("INSERT INTO migration VALUES ($1)", &[&version])
            .await?;
    }
    Ok(transaction.commit().await?)
}

fn newer(found: i64, settings: &PostgresSettings) -> StoreError {
    StoreError::Newer {
        place: format!(
            "schema {} of {}",
            settings.schema.as_str(),
            settings.address.as_str()
        ),
        found,
        known: VERSION,
    }
}

/// Makes the index of command lines while there are no rows, where the extension `pg_trgm` can be
/// had. Without it, a search reads the rows of its principal.
async fn index_texts(client: &Client) -> Result<(), Failure> {
    const MISSING: &str = "SELECT to_regclass('execution_command') IS NULL \
         AND NOT EXISTS (SELECT 1 FROM execution)";
    const EXTENSION: &str = "SELECT n.nspname FROM pg_extension e \
         JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'";
    if !client
        .query_one(MISSING, &[])
        .await?
        .try_get::<_, bool>(0)?
    {
        return Ok(());
    }
    // In `public`, where the indexes of other schemas outlive this one.
    let create = "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public";
    let created = client.batch_execute(create).await;
    if created.is_err_and(|error| error.as_db_error().is_none()) {
        return Err(Failure::unusable("the connection was cut"));
    }
    let Some(row) = client.query_opt(EXTENSION, &[]).await? else {
        return Ok(());
    };
    let operators: String = row.try_get(0)?;
    let index = format!(
        "CREATE INDEX IF NOT EXISTS execution_command ON execution \
         USING gin (lower(command COLLATE \"C\") \"{}\".gin_trgm_ops)",
        operators.replace('"', "\"\"")
    );
    Ok(client.batch_execute(&index).await?)
}

/// The advisory lock of the ledger's rows.
fn lock_key(settings: &PostgresSettings) -> i64 {
    let mut hasher = Sha256::new();
    hasher.update(settings.schema.as_str());
    hasher.update([0]);
    hasher.update(&settings.ledger);
    super::values::first_number(&hasher.finalize())
}
