//! Between rows of the table and [`HistoryRow`].

use ostler_model::{ExecutionId, Owner, Principal, SessionName, Timestamp, Usage, UsagePeaks};
use rusqlite::types::Type;
use rusqlite::{Row, Statement, Transaction, params};
use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::row::{HistoryRow, RunTotals};
use crate::sql_values::{channel, channel_name, from_sql, timestamp, to_sql};

/// The columns that [`read`] expects, in order.
pub(super) const COLUMNS: &str = "position, id, principal, project, session, task, channel, \
     client, execution.command, directory, labels, level, in_force, policy, created_us, started_us, \
     ended_us, cause, code, signal, attempts, user_us, system_us, max_rss_bytes, output_bytes, \
     prompts, fingerprint, output_lines, peaks";

/// Inserts a row as it is known, unless its id is there.
const INSERT: &str = "INSERT INTO execution (position, id, principal, project, \
     session, task, channel, client, command, directory, labels, level, in_force, policy, \
     created_us, fingerprint, short_id, started_us, ended_us, cause, code, signal, attempts, \
     user_us, system_us, max_rss_bytes, output_bytes, prompts, output_lines, peaks) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
     ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30) \
     ON CONFLICT DO NOTHING";
/// Deletes the row of an earlier run under the same id, see
/// [`created`](crate::changes::RowChanges::created).
const DELETE_EARLIER: &str = "DELETE FROM execution WHERE id = ?1 AND position < ?2 \
     AND (attempts = 0 OR cause IS NOT NULL)";

/// Inserts a row; replaces that of an earlier run.
pub(super) fn insert(transaction: &Transaction<'_>, row: &HistoryRow) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(INSERT)?;
    if insert_new(&mut statement, row)? > 0 {
        return Ok(());
    }
    let parameters = params![row.id.to_bytes(), to_sql(row.position)];
    let mut delete = transaction.prepare_cached(DELETE_EARLIER)?;
    if delete.execute(parameters)? > 0 {
        insert_new(&mut statement, row)?;
    }
    Ok(())
}

fn insert_new(statement: &mut Statement<'_>, row: &HistoryRow) -> rusqlite::Result<usize> {
    let totals = row.totals.as_ref();
    let total = |of: fn(&RunTotals) -> u64| totals.map(of).map(to_sql);
    statement.execute(params![
        to_sql(row.position),
        row.id.to_bytes(),
        row.owner.principal.0,
        row.owner.project,
        row.owner.session.as_ref().map(|name| &name.0),
        row.owner.task,
        channel_name(row.owner.channel),
        row.client,
        row.command,
        row.directory,
        Value::from(row.labels.clone()).to_string(),
        row.level,
        Value::from(row.in_force.clone()).to_string(),
        row.policy,
        row.created.as_microsecond(),
        row.fingerprint.map(Fingerprint::to_sql),
        row.id.short(),
        row.started.map(Timestamp::as_microsecond),
        row.ended.map(Timestamp::as_microsecond),
        row.cause,
        row.code,
        row.signal,
        row.attempts,
        total(|totals| totals.usage.user_us),
        total(|totals| totals.usage.system_us),
        total(|totals| totals.usage.max_rss_bytes),
        total(|totals| totals.output_bytes),
        total(|totals| totals.prompts),
        totals.and_then(|totals| totals.output_lines).map(to_sql),
        totals.and_then(peaks_json),
    ])
}

/// The most of each resource as the column holds it.
pub(super) fn peaks_json(totals: &RunTotals) -> Option<String> {
    serde_json::to_string(&totals.peaks).ok()
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    let owner = Owner {
        principal: Principal(row.get("principal")?),
        project: row.get("project")?,
        session: row.get::<_, Option<String>>("session")?.map(SessionName),
        task: row.get("task")?,
        channel: channel(&row.get::<_, String>("channel")?),
    };
    Ok(HistoryRow {
        position: from_sql(row.get("position")?),
        id: ExecutionId::from_bytes(row.get("id")?),
        owner,
        client: row.get("client")?,
        command: row.get("command")?,
        directory: row.get("directory")?,
        labels: names(row, "labels")?,
        level: row.get("level")?,
        in_force: names(row, "in_force")?,
        policy: row.get("policy")?,
        created: timestamp(row.get("created_us")?),
        started: row.get::<_, Option<i64>>("started_us")?.map(timestamp),
        ended: row.get::<_, Option<i64>>("ended_us")?.map(timestamp),
        cause: row.get("cause")?,
        code: row.get("code")?,
        signal: row.get("signal")?,
        attempts: row.get("attempts")?,
        totals: totals(row)?,
        fingerprint: row
            .get::<_, Option<i64>>("fingerprint")?
            .map(Fingerprint::from_sql),
    })
}

fn totals(row: &Row<'_>) -> rusqlite::Result<Option<RunTotals>> {
    let Some(user_us) = row.get::<_, Option<i64>>("user_us")? else {
        return Ok(None);
    };
    let number = |name: &str| {
        let value: Option<i64> = row.get(name)?;
        Ok::<u64, rusqlite::Error>(from_sql(value.unwrap_or_default()))
    };
    Ok(Some(RunTotals {
        usage: Usage {
            user_us: from_sql(user_us),
            system_us: number("system_us")?,
            max_rss_bytes: number("max_rss_bytes")?,
        },
        peaks: peaks(row)?,
        output_bytes: number("output_bytes")?,
        output_lines: row.get::<_, Option<i64>>("output_lines")?.map(from_sql),
        prompts: number("prompts")?,
    }))
}

/// Rows of versions before the peaks have none.
fn peaks(row: &Row<'_>) -> rusqlite::Result<UsagePeaks> {
    let text: Option<String> = row.get("peaks")?;
    text.map_or_else(
        || Ok(UsagePeaks::default()),
        |text| serde_json::from_str(&text).map_err(not_json),
    )
}

/// A column that holds a list of names as JSON.
fn names(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<String>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}
