//! Searches.

use std::time::Duration;

use ostler_model::{ExecutionId, Scope, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::row_columns::{self, COLUMNS, to_sql};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::query::{HistoryPage, HistoryQuery, HistoryStatus, LISTED_ROWS_MAX, SKIPPED_ROWS_MAX};
use crate::row::HistoryRow;
use crate::statistics::{RunSample, RunStatistics, STATISTICS_DAYS, STATISTICS_RUNS_MAX};

/// The fewest characters that the index of command lines can find.
const INDEXED_CHARS_MIN: usize = 3;

/// A statement that is put together: conditions and their values.
#[derive(Debug, Default)]
struct Conditions {
    texts: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition with a `?` for each value.
    fn add(&mut self, text: &'static str, values: impl IntoIterator<Item = Value>) {
        self.texts.push(text);
        self.values.extend(values);
    }
}

/// One page, newest first.
pub(super) fn list(
    connection: &Connection,
    query: &HistoryQuery,
) -> Result<HistoryPage, StoreError> {
    let limit = query.limit.clamp(1, LISTED_ROWS_MAX);
    let skip = query.skip.min(SKIPPED_ROWS_MAX);
    let conditions = conditions(query);
    // The index of texts returns its rows in order: the newest matches end the search.
    let from = match query.text {
        Some(ref text) if is_indexed(text) => {
            "command_text CROSS JOIN execution ON position = command_text.rowid"
        }
        Some(_) | None => "execution",
    };
    let order = if from == "execution" {
        "position"
    } else {
        "command_text.rowid"
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {from} WHERE {} ORDER BY {order} DESC LIMIT {} OFFSET {skip}",
        conditions.texts.join(" AND "),
        limit + 1,
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(params_from_iter(&conditions.values), row_columns::read)?;
    let mut rows = found.collect::<rusqlite::Result<Vec<HistoryRow>>>()?;
    let has_more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_before = rows.last().filter(|_| has_more).map(|row| row.position);
    Ok(HistoryPage { rows, next_before })
}

/// Which execution is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum IdCondition<'a> {
    /// By its id.
    Whole(ExecutionId),
    /// By its short id; of several, the newest.
    Short(&'a str),
}

/// The row of an execution, if the caller may see it.
pub(super) fn find(
    connection: &Connection,
    query: &HistoryQuery,
    id: &IdCondition<'_>,
) -> Result<Option<HistoryRow>, StoreError> {
    let mut conditions = conditions(query);
    match id {
        IdCondition::Whole(id) => conditions.add("id = ?", [Value::Blob(id.to_bytes().to_vec())]),
        IdCondition::Short(id) => conditions.add("short_id = ?", [Value::Text((*id).to_owned())]),
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM execution WHERE {} ORDER BY position DESC LIMIT 1",
        conditions.texts.join(" AND ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query_map(params_from_iter(&conditions.values), row_columns::read)?;
    Ok(found.next().transpose()?)
}

/// How the command of an execution usually ends; none where too little is known.
pub(super) fn statistics_of(
    connection: &Connection,
    id: ExecutionId,
    now: Timestamp,
) -> Result<Option<RunStatistics>, StoreError> {
    const SQL: &str =
        "SELECT principal, fingerprint FROM execution WHERE id = ?1 AND fingerprint IS NOT NULL";
    let mut statement = connection.prepare_cached(SQL)?;
    let row = statement.query_row([id.to_bytes()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    match row.optional()? {
        Some((principal, fingerprint)) => {
            let fingerprint = Fingerprint::from_sql(fingerprint);
            statistics(connection, &principal, fingerprint, now)
        }
        None => Ok(None),
    }
}

/// How a principal's commands with a fingerprint ended lately; none where they are too few.
pub(super) fn statistics(
    connection: &Connection,
    principal: &str,
    fingerprint: Fingerprint,
    now: Timestamp,
) -> Result<Option<RunStatistics>, StoreError> {
    const SQL: &str = "SELECT started_us, ended_us, code, max_rss_bytes FROM execution \
         WHERE principal = ?1 AND fingerprint = ?2 AND ended_us >= ?3 AND started_us IS NOT NULL \
         AND cause IN ('exited', 'signaled', 'out_of_memory') ORDER BY position DESC LIMIT ?4";
    const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;
    let since = now.as_microsecond() - STATISTICS_DAYS * DAY_US;
    let mut statement = connection.prepare_cached(SQL)?;
    let parameters = (
        principal,
        fingerprint.to_sql(),
        since,
        to_sql(STATISTICS_RUNS_MAX as u64),
    );
    let samples = statement.query_map(parameters, |row| {
        let (started, ended): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok(RunSample {
            duration: Duration::from_micros(row_columns::from_sql(ended - started)),
            success: row.get::<_, Option<i32>>(2)? == Some(0),
            peak_memory_bytes: row_columns::from_sql(row.get::<_, Option<i64>>(3)?.unwrap_or(0)),
        })
    })?;
    let samples = samples.collect::<rusqlite::Result<Vec<RunSample>>>()?;
    Ok(RunStatistics::of(&samples))
}

fn conditions(query: &HistoryQuery) -> Conditions {
    let text = |value: &str| Value::Text(value.to_owned());
    let mut conditions = Conditions::default();
    let owner = &query.caller.owner;
    conditions.add("principal = ?", [text(&owner.principal.0)]);
    if query.caller.scope == Scope::Session {
        let session = owner.session.as_ref().map(|name| text(&name.0));
        let project = owner.project.as_deref().map(text);
        conditions.add(
            "(session IS ? OR (session IS NULL AND project IS NOT NULL AND project IS ?))",
            [
                session.unwrap_or(Value::Null),
                project.unwrap_or(Value::Null),
            ],
        );
    }
    if let Some(before) = query.before {
        conditions.add("position < ?", [Value::Integer(to_sql(before))]);
    }
    if let Some(project) = &query.project {
        conditions.add("project = ?", [text(project)]);
    }
    if let Some(session) = &query.session {
        conditions.add("session = ?", [text(session)]);
    }
    if let Some(status) = query.status {
        conditions.add(status_condition(status), []);
    }
    if let Some(label) = &query.label {
        conditions.add(
            "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)",
            [text(label)],
        );
    }
    if let Some(since) = query.since {
        conditions.add("created_us >= ?", [Value::Integer(since.as_microsecond())]);
    }
    if let Some(until) = query.until {
        conditions.add("created_us < ?", [Value::Integer(until.as_microsecond())]);
    }
    if let Some(searched) = &query.text {
        if is_indexed(searched) {
            let phrase = format!("\"{}\"", searched.replace('"', "\"\""));
            conditions.add("command_text MATCH ?", [Value::Text(phrase)]);
        } else {
            conditions.add(
                "execution.command LIKE ? ESCAPE '\\'",
                [Value::Text(format!("%{}%", escape_like(searched)))],
            );
        }
    }
    conditions
}

fn is_indexed(text: &str) -> bool {
    text.chars().count() >= INDEXED_CHARS_MIN
}

fn escape_like(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\");
    escaped.replace('%', "\\%").replace('_', "\\_")
}

const fn status_condition(status: HistoryStatus) -> &'static str {
    match status {
        HistoryStatus::Running => "cause IS NULL",
        HistoryStatus::Succeeded => "cause = 'exited' AND code IS 0",
        HistoryStatus::Failed => "cause IS NOT NULL AND NOT (cause = 'exited' AND code IS 0)",
        HistoryStatus::TimedOut => "cause = 'timed_out'",
        HistoryStatus::Stopped => "cause = 'stopped'",
        HistoryStatus::Lost => "cause = 'lost'",
    }
}
