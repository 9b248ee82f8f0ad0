//! The history as a caller sees it that may be limited to projects.

use std::collections::VecDeque;

use ostler_model::{Caller, ProjectSet};
use ostler_store::{HistoryPage, HistoryQuery, HistoryRow, RunStatistics};

use crate::error::ApiError;
use crate::history::{History, HistoryAnswer, HistoryFreshness};

/// The fewest rows of one project that are read at once.
const ROWS_MIN: u64 = 50;

/// One page, newest first. Of several projects, the rows of each are read in turn and merged.
///
/// # Errors
/// As [`History::list`].
pub async fn list(
    history: &History,
    query: HistoryQuery,
) -> Result<HistoryAnswer<HistoryPage>, ApiError> {
    let ProjectSet::Named(names) = query.caller.projects.reachable.clone() else {
        return history.list(query).await;
    };
    let names: Vec<String> = match &query.project {
        Some(project) => names.get(project).into_iter().cloned().collect(),
        None => names.into_iter().collect(),
    };
    match names.as_slice() {
        [] => {
            let mut answer = history.list(HistoryQuery { limit: 1, ..query }).await?;
            answer.value = no_rows();
            Ok(answer)
        }
        [project] => history.list(of_project(&query, project)).await,
        names => merged(history, &query, names).await,
    }
}

/// One execution by its id, and how its command usually ends.
///
/// # Errors
/// As [`History::find`]; one of another project is unknown.
pub async fn find(
    history: &History,
    caller: &Caller,
    id: &str,
) -> Result<HistoryAnswer<(HistoryRow, Option<RunStatistics>)>, ApiError> {
    let answer = history.find(caller, id).await?;
    if caller.can_access(&answer.value.0.owner) {
        return Ok(answer);
    }
    Err(answer.freshness.missing(id))
}

/// The query for one project: what was passed to it is visible in every session.
fn of_project(query: &HistoryQuery, project: &str) -> HistoryQuery {
    let mut query = query.clone();
    query.caller.owner.project = Some(project.to_owned());
    query.project = Some(project.to_owned());
    query
}

/// The rows of one project that are read, newest first.
struct ProjectRows {
    query: HistoryQuery,
    rows: VecDeque<HistoryRow>,
    /// Whether older ones are left in the history.
    has_more: bool,
}

impl ProjectRows {
    fn new(query: &HistoryQuery, project: &str) -> Self {
        Self {
            query: HistoryQuery {
                limit: query.limit.max(ROWS_MIN),
                skip: 0,
                ..of_project(query, project)
            },
            rows: VecDeque::new(),
            has_more: true,
        }
    }

    /// Reads the next rows where none are left; returns how complete they are.
    async fn fill(&mut self, history: &History) -> Result<Option<HistoryFreshness>, ApiError> {
        if !self.rows.is_empty() || !self.has_more {
            return Ok(None);
        }
        let HistoryAnswer { value, freshness } = history.list(self.query.clone()).await?;
        self.has_more = value.next_before.is_some();
        self.query.before = value.next_before;
        self.rows = value.rows.into();
        Ok(Some(freshness))
    }

    fn newest(&self) -> Option<u64> {
        self.rows.front().map(|row| row.position)
    }
}

async fn merged(
    history: &History,
    query: &HistoryQuery,
    names: &[String],
) -> Result<HistoryAnswer<HistoryPage>, ApiError> {
    let all = names.iter().map(|project| ProjectRows::new(query, project));
    let mut projects: Vec<ProjectRows> = all.collect();
    let (mut page, mut skipped) = (no_rows(), 0);
    let mut freshness = None;
    loop {
        for project in &mut projects {
            let read = project.fill(history).await?;
            freshness = freshness.or(read);
        }
        let newest = projects.iter_mut().max_by_key(|project| project.newest());
        let Some(row) = newest.and_then(|project| project.rows.pop_front()) else {
            break;
        };
        if skipped < query.skip {
            skipped += 1;
        } else if (page.rows.len() as u64) < query.limit {
            page.rows.push(row);
        } else {
            page.next_before = page.rows.last().map(|row| row.position);
            break;
        }
    }
    let complete = HistoryFreshness {
        behind: 0,
        error: None,
    };
    Ok(HistoryAnswer {
        value: page,
        freshness: freshness.unwrap_or(complete),
    })
}

const fn no_rows() -> HistoryPage {
    HistoryPage {
        rows: Vec::new(),
        next_before: None,
    }
}
