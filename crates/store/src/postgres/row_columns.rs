//! Between rows of the table and [`HistoryRow`].

use ostler_model::{ExecutionId, Owner, Principal, SessionName, Usage, UsagePeaks};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::values::{name_hash, names_json, text};
use crate::fingerprint::Fingerprint;
use crate::row::{HistoryRow, RunTotals};
use crate::sql_values::{channel, channel_name, from_sql, timestamp, to_sql};

/// The columns that [`read`] expects.
pub(super) const COLUMNS: &str = "position, id, principal, project, session, task, channel, \
     client, command, directory, labels::text AS labels, level, in_force, policy, created_us, \
     started_us, ended_us, cause, code, signal, attempts, user_us, system_us, max_rss_bytes, \
     output_bytes, prompts, fingerprint, output_lines, peaks";

/// Inserts rows, given by columns, unless their ids are there.
pub(super) const INSERT: &str = "INSERT INTO execution (ledger, position, id, short_id, \
     principal, principal_hash, project, project_hash, session, session_hash, task, channel, \
     client, command, directory, labels, level, in_force, policy, created_us, started_us, \
     ended_us, cause, code, signal, attempts, user_us, system_us, max_rss_bytes, output_bytes, \
     prompts, output_lines, peaks, fingerprint) \
     SELECT $1::bigint, position, id, short_id, \
     principal, principal_hash, project, project_hash, session, session_hash, task, channel, \
     client, command, directory, labels::jsonb, level, in_force, policy, created_us, started_us, \
     ended_us, cause, code, signal, attempts, user_us, system_us, max_rss_bytes, output_bytes, \
     prompts, output_lines, peaks, fingerprint \
     FROM unnest($2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::text[], \
     $8::bigint[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], \
     $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], \
     $21::bigint[], $22::bigint[], $23::text[], $24::int[], $25::int[], $26::bigint[], \
     $27::bigint[], $28::bigint[], $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[], \
     $33::text[], $34::bigint[]) AS new (position, id, short_id, principal, principal_hash, \
     project, project_hash, session, session_hash, task, channel, client, command, directory, \
     labels, level, in_force, policy, created_us, started_us, ended_us, cause, code, signal, \
     attempts, user_us, system_us, max_rss_bytes, output_bytes, prompts, output_lines, peaks, \
     fingerprint) \
     ON CONFLICT (ledger, id) DO NOTHING";
/// Deletes the rows of earlier runs under the ids of new ones, see
/// [`created`](crate::changes::RowChanges::created).
pub(super) const DELETE_EARLIER: &str = "DELETE FROM execution AS row \
     USING unnest($2::bigint[], $3::bytea[]) AS new (position, id) \
     WHERE row.ledger = $1 AND row.id = new.id AND row.position < new.position \
     AND (row.attempts = 0 OR row.cause IS NOT NULL)";

/// The values of one column, as an array.
pub(super) type Column = Box<dyn ToSql + Sync + Send>;

/// The columns of [`INSERT`], in its order.
pub(super) fn insert_columns(rows: &[HistoryRow]) -> Vec<Column> {
    let session = |row: &HistoryRow| row.owner.session.as_ref().map(|name| name.0.clone());
    let mut columns: Vec<Column> = vec![
        numbers(rows, |row| to_sql(row.position)),
        column(rows, |row| row.id.to_bytes().to_vec()),
        texts(rows, |row| row.id.short()),
        texts(rows, |row| row.owner.principal.0.clone()),
        numbers(rows, |row| name_hash(&row.owner.principal.0)),
        optional_texts(rows, |row| row.owner.project.clone()),
        optional_numbers(rows, |row| row.owner.project.as_deref().map(name_hash)),
        optional_texts(rows, session),
        optional_numbers(rows, |row| session(row).as_deref().map(name_hash)),
        optional_texts(rows, |row| row.owner.task.clone()),
        texts(rows, |row| channel_name(row.owner.channel).to_owned()),
        texts(rows, |row| row.client.clone()),
        texts(rows, |row| row.command.clone()),
        texts(rows, |row| row.directory.clone()),
        column(rows, |row| names_json(&row.labels)),
        texts(rows, |row| row.level.clone()),
        column(rows, |row| names_json(&row.in_force)),
        texts(rows, |row| row.policy.clone()),
        numbers(rows, |row| row.created.as_microsecond()),
        optional_numbers(rows, |row| row.started.map(|at| at.as_microsecond())),
        optional_numbers(rows, |row| row.ended.map(|at| at.as_microsecond())),
        optional_texts(rows, |row| row.cause.clone()),
        column(rows, |row| row.code),
        column(rows, |row| row.signal),
        numbers(rows, |row| i64::from(row.attempts)),
    ];
    columns.extend(totals_columns(rows, |row| row.totals.as_ref()));
    columns.push(optional_numbers(rows, |row| {
        row.fingerprint.map(Fingerprint::to_sql)
    }));
    columns
}

/// The seven columns of totals, in the order of [`INSERT`].
pub(super) fn totals_columns<T>(
    rows: &[T],
    totals: impl Fn(&T) -> Option<&RunTotals>,
) -> [Column; 7] {
    let number = |of: fn(&RunTotals) -> u64| {
        optional_numbers(rows, |row| totals(row).map(|totals| to_sql(of(totals))))
    };
    [
        number(|totals| totals.usage.user_us),
        number(|totals| totals.usage.system_us),
        number(|totals| totals.usage.max_rss_bytes),
        number(|totals| totals.output_bytes),
        number(|totals| totals.prompts),
        optional_numbers(rows, |row| totals(row)?.output_lines.map(to_sql)),
        column(rows, |row| {
            totals(row).and_then(|totals| serde_json::to_string(&totals.peaks).ok())
        }),
    ]
}

/// One column.
pub(super) fn column<T, V: ToSql + Sync + Send + 'static>(
    rows: &[T],
    value: impl Fn(&T) -> V,
) -> Column {
    Box::new(rows.iter().map(value).collect::<Vec<V>>())
}

pub(super) fn numbers<T>(rows: &[T], value: impl Fn(&T) -> i64) -> Column {
    column(rows, value)
}

pub(super) fn optional_numbers<T>(rows: &[T], value: impl Fn(&T) -> Option<i64>) -> Column {
    column(rows, value)
}

pub(super) fn texts<T>(rows: &[T], value: impl Fn(&T) -> String) -> Column {
    column(rows, |row| text(&value(row)))
}

pub(super) fn optional_texts<T>(rows: &[T], value: impl Fn(&T) -> Option<String>) -> Column {
    column(rows, |row| value(row).map(|value| text(&value)))
}

pub(super) fn read(row: &Row) -> Result<HistoryRow, Failure> {
    let number = |name| -> Result<Option<i64>, Failure> { Ok(row.try_get(name)?) };
    let owner = Owner {
        principal: Principal(row.try_get("principal")?),
        project: row.try_get("project")?,
        session: row
            .try_get::<_, Option<String>>("session")?
            .map(SessionName),
        task: row.try_get("task")?,
        channel: channel(row.try_get("channel")?),
    };
    Ok(HistoryRow {
        position: from_sql(row.try_get("position")?),
        id: id(row.try_get("id")?)?,
        owner,
        client: row.try_get("client")?,
        command: row.try_get("command")?,
        directory: row.try_get("directory")?,
        labels: json(row.try_get("labels")?)?,
        level: row.try_get("level")?,
        in_force: json(row.try_get("in_force")?)?,
        policy: row.try_get("policy")?,
        created: timestamp(row.try_get("created_us")?),
        started: number("started_us")?.map(timestamp),
        ended: number("ended_us")?.map(timestamp),
        cause: row.try_get("cause")?,
        code: row.try_get("code")?,
        signal: row.try_get("signal")?,
        attempts: u32::try_from(row.try_get::<_, i64>("attempts")?).unwrap_or(u32::MAX),
        totals: totals(row)?,
        fingerprint: number("fingerprint")?.map(Fingerprint::from_sql),
    })
}

/// The id of an execution.
pub(super) fn id(bytes: &[u8]) -> Result<ExecutionId, Failure> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Failure::unusable("a row has no id of an execution"))?;
    Ok(ExecutionId::from_bytes(bytes))
}

fn totals(row: &Row) -> Result<Option<RunTotals>, Failure> {
    let number = |name| -> Result<u64, Failure> {
        let value: Option<i64> = row.try_get(name)?;
        Ok(from_sql(value.unwrap_or_default()))
    };
    if row.try_get::<_, Option<i64>>("user_us")?.is_none() {
        return Ok(None);
    }
    let peaks: Option<&str> = row.try_get("peaks")?;
    let output_lines: Option<i64> = row.try_get("output_lines")?;
    Ok(Some(RunTotals {
        usage: Usage {
            user_us: number("user_us")?,
            system_us: number("system_us")?,
            max_rss_bytes: number("max_rss_bytes")?,
        },
        peaks: peaks.map_or_else(|| Ok(UsagePeaks::default()), json)?,
        output_bytes: number("output_bytes")?,
        output_lines: output_lines.map(from_sql),
        prompts: number("prompts")?,
    }))
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::unusable(format!("a row holds no JSON: {error}")))
}
