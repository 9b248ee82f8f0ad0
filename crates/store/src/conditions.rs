//! What a query selects, as a list of conditions that each database writes in its SQL. Pure.

use std::collections::BTreeSet;

use ostler_model::{Caller, ExecutionId, ProjectSet, Scope, Timestamp};

use crate::database::IdCondition;
use crate::query::{HistoryQuery, HistoryStatus};

/// One condition; a row is selected where all hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition<'a> {
    /// Of this principal.
    Principal(&'a str),
    /// Of one of these projects.
    Projects(&'a BTreeSet<String>),
    /// Of this session (or of none), or passed to a project.
    OwnOrPassed {
        session: Option<&'a str>,
        passed_to: PassedTo<'a>,
    },
    /// Before this position.
    Before(u64),
    /// Of this project.
    Project(&'a str),
    /// Of this session.
    Session(&'a str),
    /// In this state.
    Status(HistoryStatus),
    /// With this label.
    Label(&'a str),
    /// Requested then or later.
    Since(Timestamp),
    /// Requested before then.
    Until(Timestamp),
    /// With this in the command line.
    Text(&'a str),
    /// With this id.
    Id(ExecutionId),
    /// With this short id.
    ShortId(&'a str),
}

/// Which executions without a session a session sees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PassedTo<'a> {
    /// Those of its project; of none, none.
    Project(Option<&'a str>),
    /// Those of any project that is selected.
    AnySelected,
}

/// The conditions of a search.
pub(crate) fn of_query(query: &HistoryQuery) -> Vec<Condition<'_>> {
    let mut conditions = of_caller(&query.caller);
    let more = [
        query.before.map(Condition::Before),
        query.project.as_deref().map(Condition::Project),
        query.session.as_deref().map(Condition::Session),
        query.status.map(Condition::Status),
        query.label.as_deref().map(Condition::Label),
        query.since.map(Condition::Since),
        query.until.map(Condition::Until),
        query.text.as_deref().map(Condition::Text),
    ];
    conditions.extend(more.into_iter().flatten());
    conditions
}

/// The conditions of one execution.
pub(crate) fn of_id<'a>(caller: &'a Caller, id: &IdCondition<'a>) -> Vec<Condition<'a>> {
    let mut conditions = of_caller(caller);
    conditions.push(match *id {
        IdCondition::Whole(id) => Condition::Id(id),
        IdCondition::Short(id) => Condition::ShortId(id),
    });
    conditions
}

/// What the caller may see: as [`Caller::can_access`] decides.
fn of_caller(caller: &Caller) -> Vec<Condition<'_>> {
    let owner = &caller.owner;
    let mut conditions = vec![Condition::Principal(&owner.principal.0)];
    let passed_to = match &caller.projects.reachable {
        ProjectSet::All => PassedTo::Project(owner.project.as_deref()),
        ProjectSet::Named(names) => {
            conditions.push(Condition::Projects(names));
            PassedTo::AnySelected
        }
    };
    if caller.scope == Scope::Session {
        let session = owner.session.as_ref().map(|name| name.0.as_str());
        conditions.push(Condition::OwnOrPassed { session, passed_to });
    }
    conditions
}

/// A text as a pattern of `LIKE` with `\` as the escape character, that finds it anywhere.
pub(crate) fn like_pattern(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\");
    let escaped = escaped.replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}
