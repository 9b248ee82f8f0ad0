//! The tables, and the steps from each version of them to the next.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use crate::error::StoreError;

/// The step to version `index + 1`. A step is never changed once it has been released.
const MIGRATIONS: &[&str] = &[CREATE_TABLES, ADD_PEAKS];

const CREATE_TABLES: &str = "
CREATE TABLE execution (
    position INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    short_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    project TEXT,
    session TEXT,
    task TEXT,
    channel TEXT NOT NULL,
    client TEXT NOT NULL,
    command TEXT NOT NULL,
    directory TEXT NOT NULL,
    labels TEXT NOT NULL,
    level TEXT NOT NULL,
    in_force TEXT NOT NULL,
    policy TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    started_us INTEGER,
    ended_us INTEGER,
    cause TEXT,
    code INTEGER,
    signal INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    user_us INTEGER,
    system_us INTEGER,
    max_rss_bytes INTEGER,
    output_bytes INTEGER,
    prompts INTEGER,
    fingerprint INTEGER
) STRICT;
CREATE INDEX execution_principal ON execution (principal, position);
CREATE INDEX execution_project ON execution (principal, project, position);
CREATE INDEX execution_session ON execution (principal, session, position);
CREATE INDEX execution_failed ON execution (principal, position)
    WHERE cause IS NOT NULL AND NOT (cause = 'exited' AND code IS 0);
CREATE INDEX execution_running ON execution (principal, position) WHERE cause IS NULL;
CREATE INDEX execution_short_id ON execution (short_id);
CREATE INDEX execution_created ON execution (created_us);
CREATE INDEX execution_fingerprint ON execution (principal, fingerprint, position);
CREATE VIRTUAL TABLE command_text USING fts5 (
    command, content = 'execution', content_rowid = 'position', tokenize = 'trigram'
);
CREATE TRIGGER command_text_insert AFTER INSERT ON execution BEGIN
    INSERT INTO command_text (rowid, command) VALUES (new.position, new.command);
END;
CREATE TRIGGER command_text_delete AFTER DELETE ON execution BEGIN
    INSERT INTO command_text (command_text, rowid, command)
        VALUES ('delete', old.position, old.command);
END;
-- How far the ledger is folded: one row.
CREATE TABLE folded (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    position INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO folded VALUES (1, 0, '');
";

/// The most of each resource, as JSON.
const ADD_PEAKS: &str = "
ALTER TABLE execution ADD COLUMN output_lines INTEGER;
ALTER TABLE execution ADD COLUMN peaks TEXT;
";

/// Whether the tables were made.
pub(super) fn has_tables(connection: &Connection) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT count(*) FROM sqlite_schema WHERE name = 'folded'";
    let count: i64 = connection.query_row(SQL, (), |row| row.get(0))?;
    Ok(count > 0)
}

/// Brings the tables up to date.
pub(super) fn migrate(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
    };
    let known = known_version();
    if version(connection)? == known {
        return Ok(());
    }
    // Read again under the lock: another process may have migrated meanwhile.
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found > known {
        let place = file.display().to_string();
        return Err(StoreError::Newer {
            place,
            found,
            known,
        });
    }
    let done = usize::try_from(found)
        .map_err(|_| StoreError::Damaged(format!("it has the schema version {found}")))?;
    migrate_from(&transaction, done)?;
    transaction.commit()?;
    Ok(())
}

/// Runs the steps after this many.
fn migrate_from(transaction: &Transaction<'_>, done: usize) -> Result<(), StoreError> {
    for step in &MIGRATIONS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known_version())?;
    Ok(())
}

fn known_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Makes all tables anew, without rows, whatever tables there are. Readers see the old ones until
/// it is done.
pub(super) fn recreate(connection: &mut Connection) -> Result<(), StoreError> {
    // What belongs to a virtual table goes with it; triggers and indexes go with their tables.
    const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'";
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let names: Vec<String> = {
        let mut statement = transaction.prepare(TABLES)?;
        let names = statement.query_map((), |row| row.get(0))?;
        names.collect::<Result<_, _>>()?
    };
    for name in names {
        let name = name.replace('"', "\"\"");
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS \"{name}\""))?;
    }
    migrate_from(&transaction, 0)?;
    transaction.commit()?;
    Ok(())
}
