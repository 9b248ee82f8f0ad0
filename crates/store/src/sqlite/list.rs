//! Searches.

use std::time::Duration;

use ostler_model::{Caller, ExecutionId, Principal, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::row_columns::{self, COLUMNS};
use crate::conditions::{self, Condition, PassedTo, like_pattern};
use crate::database::{CommandKey, IdCondition};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::query::{HistoryPage, HistoryQuery, HistoryStatus};
use crate::row::HistoryRow;
use crate::sql_values::{from_sql, to_sql};
use crate::statistics::{RunSample, STATISTICS_RUNS_MAX};

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

    fn of(conditions: &[Condition<'_>]) -> Self {
        let mut sql = Self::default();
        for condition in conditions {
            sql.add_condition(condition);
        }
        sql
    }

    fn add_condition(&mut self, condition: &Condition<'_>) {
        let text = |value: &str| Value::Text(value.to_owned());
        let nullable = |value: Option<&str>| value.map_or(Value::Null, text);
        match *condition {
            Condition::Principal(name) => self.add("principal = ?", [text(name)]),
            Condition::Projects(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let names = serde_json::Value::from(names).to_string();
                self.add(
                    "project IN (SELECT value FROM json_each(?))",
                    [text(&names)],
                );
            }
            Condition::OwnOrPassed { session, passed_to } => {
                let session = nullable(session);
                match passed_to {
                    PassedTo::AnySelected => self.add(
                        "(session IS ? OR (session IS NULL AND project IS NOT NULL))",
                        [session],
                    ),
                    PassedTo::Project(project) => self.add(
                        "(session IS ? OR (session IS NULL AND project IS NOT NULL AND project IS ?))",
                        [session, nullable(project)],
                    ),
                }
            }
            Condition::Before(position) => {
                self.add("position < ?", [Value::Integer(to_sql(position))]);
            }
            Condition::Project(name) => self.add("project = ?", [text(name)]),
            Condition::Session(name) => self.add("session = ?", [text(name)]),
            Condition::Status(status) => self.add(status_condition(status), []),
            Condition::Label(label) => self.add(
                "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)",
                [text(label)],
            ),
            Condition::Since(at) => {
                self.add("created_us >= ?", [Value::Integer(at.as_microsecond())]);
            }
            Condition::Until(at) => {
                self.add("created_us < ?", [Value::Integer(at.as_microsecond())]);
            }
            Condition::Text(searched) if is_indexed(searched) => {
                let phrase = format!("\"{}\"", searched.replace('"', "\"\""));
                self.add("command_text MATCH ?", [Value::Text(phrase)]);
            }
            Condition::Text(searched) => self.add(
                "execution.command LIKE ? ESCAPE '\\'",
                [Value::Text(like_pattern(searched))],
            ),
            Condition::Id(id) => self.add("id = ?", [Value::Blob(id.to_bytes().to_vec())]),
            Condition::ShortId(id) => self.add("short_id = ?", [text(id)]),
        }
    }
}

/// One page, newest first.
pub(super) fn list(
    connection: &Connection,
    query: &HistoryQuery,
) -> Result<HistoryPage, StoreError> {
    let (limit, skip) = (query.page_limit(), query.page_skip());
    let conditions = Conditions::of(&conditions::of_query(query));
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
    let rows = found.collect::<rusqlite::Result<Vec<HistoryRow>>>()?;
    Ok(HistoryPage::of(rows, limit))
}

/// The newest row with an id, if the caller may see it.
pub(super) fn find(
    connection: &Connection,
    caller: &Caller,
    id: &IdCondition<'_>,
) -> Result<Option<HistoryRow>, StoreError> {
    let conditions = Conditions::of(&conditions::of_id(caller, id));
    let sql = format!(
        "SELECT {COLUMNS} FROM execution WHERE {} ORDER BY position DESC LIMIT 1",
        conditions.texts.join(" AND ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query_map(params_from_iter(&conditions.values), row_columns::read)?;
    Ok(found.next().transpose()?)
}

/// Which command each of these executions ran.
pub(super) fn command_keys(
    connection: &Connection,
    ids: &[ExecutionId],
) -> Result<Vec<(ExecutionId, CommandKey)>, StoreError> {
    const SQL: &str =
        "SELECT principal, fingerprint FROM execution WHERE id = ?1 AND fingerprint IS NOT NULL";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut keys = Vec::new();
    for id in ids {
        let key = statement.query_row([id.to_bytes()], |row| {
            Ok(CommandKey {
                principal: Principal(row.get(0)?),
                fingerprint: Fingerprint::from_sql(row.get(1)?),
            })
        });
        keys.extend(key.optional()?.map(|key| (*id, key)));
    }
    Ok(keys)
}

/// The newest ends of a command by itself, of those at `since` or later.
pub(super) fn samples(
    connection: &Connection,
    command: &CommandKey,
    since: Timestamp,
) -> Result<Vec<RunSample>, StoreError> {
    const SQL: &str = "SELECT started_us, ended_us, code, max_rss_bytes FROM execution \
         WHERE principal = ?1 AND fingerprint = ?2 AND ended_us >= ?3 AND started_us IS NOT NULL \
         AND cause IN ('exited', 'signaled', 'out_of_memory') ORDER BY position DESC LIMIT ?4";
    let mut statement = connection.prepare_cached(SQL)?;
    let parameters = (
        &command.principal.0,
        command.fingerprint.to_sql(),
        since.as_microsecond(),
        to_sql(STATISTICS_RUNS_MAX as u64),
    );
    let samples = statement.query_map(parameters, |row| {
        let (started, ended): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok(RunSample {
            duration: Duration::from_micros(from_sql(ended - started)),
            success: row.get::<_, Option<i32>>(2)? == Some(0),
            peak_memory_bytes: from_sql(row.get::<_, Option<i64>>(3)?.unwrap_or(0)),
        })
    })?;
    Ok(samples.collect::<rusqlite::Result<Vec<RunSample>>>()?)
}

fn is_indexed(text: &str) -> bool {
    text.chars().count() >= INDEXED_CHARS_MIN
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
