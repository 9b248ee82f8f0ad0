//! Writing: the changes of a group of entries, expiry, and the reset.

use ostler_journal::LedgerCursor;
use ostler_model::{Signal, Timestamp};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::connection::{Session, Statements};
use super::failure::Failure;
use super::row_columns::{
    self, Column, column, numbers, optional_numbers, optional_texts, texts, totals_columns,
};
use super::schema;
use super::settings::PostgresSettings;
use super::values::name_hash;
use crate::changes::{RowChanges, RowUpdate};
use crate::database::FoldPosition;
use crate::error::StoreError;
use crate::fold::RunEnd;
use crate::sql_values::{from_sql, to_sql};

/// Rows removed by one statement.
const EXPIRED_ROWS: u64 = 1_000;

/// How far the ledger is folded, in tables that are still those of this version.
pub(super) async fn fold_position(
    session: &mut Session,
    settings: &PostgresSettings,
) -> Result<FoldPosition, Failure> {
    let client = &session.client;
    schema::check(client, settings).await?;
    let sql = "SELECT position, hash FROM ledger WHERE identity = $1";
    let values: [(&(dyn ToSql + Sync), Type); 1] = [(&settings.ledger, Type::TEXT)];
    let row = client.query_typed_opt(sql, &values).await?;
    let row = row.ok_or_else(|| Failure::unusable("the ledger is not in its table"))?;
    Ok(FoldPosition {
        next: LedgerCursor(from_sql(row.try_get(0)?)),
        hash: row.try_get(1)?,
    })
}

/// Makes the changes and advances the position from `from`, in one transaction.
pub(super) async fn apply(
    session: &mut Session,
    ledger: &str,
    from: LedgerCursor,
    changes: &RowChanges,
    to: &FoldPosition,
) -> Result<(), Failure> {
    // The row of the ledger is locked first: nobody else changes its executions.
    const ADVANCE: &str = "UPDATE ledger SET position = $3, hash = $4 \
         WHERE identity = $1 AND position = $2 \
         AND (SELECT max(version) FROM migration) = $5 RETURNING id";
    let Session { client, statements } = session;
    let transaction = client.transaction().await?;
    let advance = statements.get(&transaction, ADVANCE).await?;
    let (from, next) = (to_sql(from.0), to_sql(to.next.0));
    let values: [&(dyn ToSql + Sync); 5] = [&ledger, &from, &next, &to.hash, &schema::VERSION];
    let row = transaction.query_opt(&advance, &values).await?;
    let row = row.ok_or(StoreError::Moved)?;
    let mut writer = RowWriter {
        ledger: row.try_get(0)?,
        transaction: &transaction,
        statements,
    };
    writer.update(&changes.before).await?;
    writer.insert(changes).await?;
    writer.update(&changes.updated).await?;
    Ok(transaction.commit().await?)
}

/// Writes rows of one ledger.
struct RowWriter<'a> {
    ledger: i64,
    transaction: &'a Transaction<'a>,
    statements: &'a mut Statements,
}

impl RowWriter<'_> {
    async fn insert(&mut self, changes: &RowChanges) -> Result<(), Failure> {
        if changes.created.is_empty() {
            return Ok(());
        }
        let columns = row_columns::insert_columns(&changes.created);
        let inserted = self.execute(row_columns::INSERT, &columns).await?;
        if inserted == changes.created.len() as u64 {
            return Ok(());
        }
        let earlier = [
            numbers(&changes.created, |row| to_sql(row.position)),
            column(&changes.created, |row| row.id.to_bytes().to_vec()),
        ];
        if self.execute(row_columns::DELETE_EARLIER, &earlier).await? > 0 {
            self.execute(row_columns::INSERT, &columns).await?;
        }
        Ok(())
    }

    async fn update(&mut self, updates: &[RowUpdate]) -> Result<(), Failure> {
        const ATTEMPTS: &str = "UPDATE execution AS row SET \
             started_us = coalesce(row.started_us, new.started_us), \
             attempts = greatest(row.attempts, new.attempts) \
             FROM unnest($2::bytea[], $3::bigint[], $4::bigint[]) \
             AS new (id, started_us, attempts) WHERE row.ledger = $1 AND row.id = new.id";
        let attempts: Vec<&RowUpdate> = updates.iter().filter(|it| it.attempts > 0).collect();
        if !attempts.is_empty() {
            let columns = [
                column(&attempts, |update| update.id.to_bytes().to_vec()),
                optional_numbers(&attempts, |update| {
                    update.started.map(Timestamp::as_microsecond)
                }),
                numbers(&attempts, |update| i64::from(update.attempts)),
            ];
            self.execute(ATTEMPTS, &columns).await?;
        }
        let ends: Vec<&RunEnd> = updates.iter().filter_map(|it| it.end.as_ref()).collect();
        self.end(&ends).await
    }

    async fn end(&mut self, ends: &[&RunEnd]) -> Result<(), Failure> {
        const ENDS: &str = "UPDATE execution AS row SET principal = new.principal, \
             principal_hash = new.principal_hash, project = new.project, \
             project_hash = new.project_hash, session = new.session, \
             session_hash = new.session_hash, ended_us = new.ended_us, cause = new.cause, \
             code = new.code, signal = new.signal, user_us = new.user_us, \
             system_us = new.system_us, max_rss_bytes = new.max_rss_bytes, \
             output_bytes = new.output_bytes, prompts = new.prompts, \
             output_lines = new.output_lines, peaks = new.peaks \
             FROM unnest($2::bytea[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], \
             $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::int[], $12::int[], \
             $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], \
             $18::bigint[], $19::text[]) AS new (id, principal, principal_hash, project, \
             project_hash, session, session_hash, ended_us, cause, code, signal, user_us, \
             system_us, max_rss_bytes, output_bytes, prompts, output_lines, peaks) \
             WHERE row.ledger = $1 AND row.id = new.id AND row.cause IS NULL";
        if ends.is_empty() {
            return Ok(());
        }
        let session = |end: &&RunEnd| end.owner.session.as_ref().map(|name| name.0.clone());
        let mut columns = vec![
            column(ends, |end| end.id.to_bytes().to_vec()),
            texts(ends, |end| end.owner.principal.0.clone()),
            numbers(ends, |end| name_hash(&end.owner.principal.0)),
            optional_texts(ends, |end| end.owner.project.clone()),
            optional_numbers(ends, |end| end.owner.project.as_deref().map(name_hash)),
            optional_texts(ends, session),
            optional_numbers(ends, |end| session(end).as_deref().map(name_hash)),
            numbers(ends, |end| end.at.as_microsecond()),
            texts(ends, |end| end.ending.cause.kind().to_owned()),
            column(ends, |end| end.ending.code),
            column(ends, |end| end.ending.signal.map(Signal::number)),
        ];
        columns.extend(totals_columns(ends, |end| end.totals.as_ref()));
        self.execute(ENDS, &columns).await?;
        Ok(())
    }

    /// Executes a statement with the ledger and columns.
    /// Executes a statement; returns how many rows it changed.
    async fn execute(&mut self, sql: &'static str, columns: &[Column]) -> Result<u64, Failure> {
        let statement = self.statements.get(self.transaction, sql).await?;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.ledger];
        values.extend(
            columns
                .iter()
                .map(|column| &**column as &(dyn ToSql + Sync)),
        );
        Ok(self.transaction.execute(&statement, &values).await?)
    }
}

/// Removes some of the old rows, and some of those of ledgers that were reset; returns whether
/// there may be more of them.
pub(super) async fn expire(
    session: &mut Session,
    ledger: &str,
    before: Timestamp,
) -> Result<bool, Failure> {
    const OLD: &str = "DELETE FROM execution WHERE (ledger, position) IN \
         (SELECT ledger, position FROM execution \
         WHERE ledger = (SELECT id FROM ledger WHERE identity = $1) \
         AND created_us < $2 AND cause IS NOT NULL LIMIT $3)";
    const OF_RESET: &str = "DELETE FROM execution WHERE (ledger, position) IN \
         (SELECT ledger, position FROM execution \
         WHERE ledger = (SELECT min(id) FROM ledger WHERE identity IS NULL) LIMIT $1)";
    const RESET: &str = "DELETE FROM ledger WHERE identity IS NULL \
         AND NOT EXISTS (SELECT 1 FROM execution WHERE ledger = ledger.id)";
    let client = &session.client;
    let (before, limit) = (before.as_microsecond(), to_sql(EXPIRED_ROWS));
    let old = client.execute(OLD, &[&ledger, &before, &limit]).await?;
    let of_reset = client.execute(OF_RESET, &[&limit]).await?;
    client.execute(RESET, &[]).await?;
    Ok(old == EXPIRED_ROWS || of_reset == EXPIRED_ROWS)
}

/// Gives the ledger a new entry without rows. Those of the old one are removed with expired ones:
/// it may be a million.
pub(super) async fn reset(session: &mut Session, ledger: &str) -> Result<(), Failure> {
    let transaction = session.client.transaction().await?;
    for sql in [
        "UPDATE ledger SET identity = NULL WHERE identity = $1",
        "INSERT INTO ledger (identity) VALUES ($1)",
    ] {
        transaction.execute(sql, &[&ledger]).await?;
    }
    Ok(transaction.commit().await?)
}
