//! Searches.

use std::time::Duration;

use ostler_model::{ExecutionId, Principal, Timestamp};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::failure::Failure;
use super::row_columns::{self, COLUMNS};
use super::values::{name_hash, text};
use crate::conditions::{Condition, PassedTo, like_pattern};
use crate::database::CommandKey;
use crate::fingerprint::Fingerprint;
use crate::query::HistoryStatus;
use crate::row::HistoryRow;
use crate::sql_values::{from_sql, to_sql};
use crate::statistics::{RunSample, STATISTICS_RUNS_MAX};

/// The rows of a ledger.
const OF_LEDGER: &str = "ledger = (SELECT id FROM ledger WHERE identity = $1)";

/// A statement that is put together: conditions, and values with their types.
#[derive(Debug)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Conditions {
    fn of(ledger: &str, conditions: &[Condition<'_>]) -> Self {
        let mut sql = Self {
            texts: vec![OF_LEDGER.to_owned()],
            values: vec![(Box::new(ledger.to_owned()), Type::TEXT)],
        };
        for condition in conditions {
            let text = sql.text(condition);
            sql.texts.push(text);
        }
        sql
    }

    /// Adds a value; returns its place in the statement.
    fn value(&mut self, value: impl ToSql + Sync + Send + 'static, of_type: Type) -> String {
        self.values.push((Box::new(value), of_type));
        format!("${}", self.values.len())
    }

    fn name(&mut self, column: &str, name: &str) -> String {
        let hash = self.value(name_hash(name), Type::INT8);
        let name = self.value(text(name), Type::TEXT);
        format!("{column}_hash = {hash} AND {column} = {name}")
    }

    fn optional_text(&mut self, value: Option<&str>) -> String {
        self.value(value.map(text), Type::TEXT)
    }

    fn text(&mut self, condition: &Condition<'_>) -> String {
        match *condition {
            Condition::Principal(name) => self.name("principal", name),
            Condition::Project(name) => self.name("project", name),
            Condition::Session(name) => self.name("session", name),
            Condition::Projects(names) => {
                let hashes: Vec<i64> = names.iter().map(|name| name_hash(name)).collect();
                let names: Vec<String> = names.iter().map(|name| text(name)).collect();
                let hashes = self.value(hashes, Type::INT8_ARRAY);
                let names = self.value(names, Type::TEXT_ARRAY);
                format!("project_hash = ANY({hashes}) AND project = ANY({names})")
            }
            Condition::OwnOrPassed { session, passed_to } => {
                let session = self.optional_text(session);
                let passed = match passed_to {
                    PassedTo::AnySelected => String::new(),
                    PassedTo::Project(project) => {
                        let project = self.optional_text(project);
                        format!(" AND project IS NOT DISTINCT FROM {project}")
                    }
                };
                format!(
                    "(session IS NOT DISTINCT FROM {session} \
                     OR (session IS NULL AND project IS NOT NULL{passed}))"
                )
            }
            Condition::Before(position) => {
                format!("position < {}", self.value(to_sql(position), Type::INT8))
            }
            Condition::Status(status) => status_condition(status).to_owned(),
            Condition::Label(label) => {
                format!("labels ? {}", self.value(text(label), Type::TEXT))
            }
            Condition::Since(at) => {
                let at = self.value(at.as_microsecond(), Type::INT8);
                format!("created_us >= {at}")
            }
            Condition::Until(at) => {
                let at = self.value(at.as_microsecond(), Type::INT8);
                format!("created_us < {at}")
            }
            Condition::Text(searched) => {
                let pattern = like_pattern(&text(searched).to_ascii_lowercase());
                let pattern = self.value(pattern, Type::TEXT);
                format!("lower(command COLLATE \"C\") LIKE {pattern}")
            }
            Condition::Id(id) => {
                format!("id = {}", self.value(id.to_bytes().to_vec(), Type::BYTEA))
            }
            Condition::ShortId(id) => {
                format!("short_id = {}", self.value(text(id), Type::TEXT))
            }
        }
    }
}

/// Some of the rows that are selected.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange {
    /// The most rows.
    pub(super) limit: u64,
    /// Rows passed over first.
    pub(super) skip: u64,
}

/// The rows of a range, newest first.
pub(super) async fn rows(
    client: &Client,
    ledger: &str,
    conditions: &[Condition<'_>],
    range: RowRange,
) -> Result<Vec<HistoryRow>, Failure> {
    let conditions = Conditions::of(ledger, conditions);
    let sql = format!(
        "SELECT {COLUMNS} FROM execution WHERE {} \
         ORDER BY position DESC LIMIT {} OFFSET {}",
        conditions.texts.join(" AND "),
        range.limit,
        range.skip
    );
    // Planned with these values: where they are, the statement has constants.
    let values: Vec<(&(dyn ToSql + Sync), Type)> = conditions
        .values
        .iter()
        .map(|(value, of_type)| (&**value as &(dyn ToSql + Sync), of_type.clone()))
        .collect();
    let found = client.query_typed(&sql, &values).await?;
    found.iter().map(row_columns::read).collect()
}

/// Which command each of these executions ran.
pub(super) async fn command_keys(
    client: &Client,
    ledger: &str,
    ids: &[ExecutionId],
) -> Result<Vec<(ExecutionId, CommandKey)>, Failure> {
    let sql = format!(
        "SELECT id, principal, fingerprint FROM execution \
         WHERE {OF_LEDGER} AND id = ANY($2) AND fingerprint IS NOT NULL"
    );
    let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.to_bytes().to_vec()).collect();
    let values: [(&(dyn ToSql + Sync), Type); 2] =
        [(&ledger, Type::TEXT), (&ids, Type::BYTEA_ARRAY)];
    let found = client.query_typed(&sql, &values).await?;
    let key = |row: &tokio_postgres::Row| {
        let command = CommandKey {
            principal: Principal(row.try_get(1)?),
            fingerprint: Fingerprint::from_sql(row.try_get(2)?),
        };
        Ok((row_columns::id(row.try_get(0)?)?, command))
    };
    found.iter().map(key).collect()
}

/// The newest ends of a command by itself, of those at `since` or later.
pub(super) async fn samples(
    client: &Client,
    ledger: &str,
    command: &CommandKey,
    since: Timestamp,
) -> Result<Vec<RunSample>, Failure> {
    let sql = format!(
        "SELECT started_us, ended_us, code, max_rss_bytes FROM execution \
         WHERE {OF_LEDGER} AND principal_hash = $2 AND principal = $3 AND fingerprint = $4 \
         AND ended_us >= $5 AND started_us IS NOT NULL \
         AND cause IN ('exited', 'signaled', 'out_of_memory') \
         ORDER BY position DESC LIMIT {STATISTICS_RUNS_MAX}"
    );
    let principal = &command.principal.0;
    let values: [(&(dyn ToSql + Sync), Type); 5] = [
        (&ledger, Type::TEXT),
        (&name_hash(principal), Type::INT8),
        (&text(principal), Type::TEXT),
        (&command.fingerprint.to_sql(), Type::INT8),
        (&since.as_microsecond(), Type::INT8),
    ];
    let found = client.query_typed(&sql, &values).await?;
    let sample = |row: &tokio_postgres::Row| {
        let (started, ended): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let peak: Option<i64> = row.try_get(3)?;
        Ok(RunSample {
            duration: Duration::from_micros(from_sql(ended - started)),
            success: row.try_get::<_, Option<i32>>(2)? == Some(0),
            peak_memory_bytes: from_sql(peak.unwrap_or(0)),
        })
    };
    found.iter().map(sample).collect()
}

const fn status_condition(status: HistoryStatus) -> &'static str {
    match status {
        HistoryStatus::Running => "cause IS NULL",
        HistoryStatus::Succeeded => "cause = 'exited' AND code IS NOT DISTINCT FROM 0",
        HistoryStatus::Failed => {
            "cause IS NOT NULL AND NOT (cause = 'exited' AND code IS NOT DISTINCT FROM 0)"
        }
        HistoryStatus::TimedOut => "cause = 'timed_out'",
        HistoryStatus::Stopped => "cause = 'stopped'",
        HistoryStatus::Lost => "cause = 'lost'",
    }
}
