//! Contexts: a directory with options that executions of one project and user share.

use ostler_model::isolation::Limits;
use ostler_model::{ByteString, ContextId, IsolationLevel, StartOptions, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parts::{OptionsPlace, OwnFields};

/// Options that belong to one start; `allowed` of a start would replace, not tighten, that of its
/// context.
const NOT_FOR_CONTEXTS: &[&str] = &["approval", "place_wait_ms", "pty", "allowed"];

/// `POST /api/v1/contexts`: the warm context of the project, or a new one. Only `project` is
/// required; one that exists already must be as requested, unless nothing else is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ContextRequestBody {
    /// The project.
    pub project: String,
    /// The task, for the variable of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The absolute directory that executions work in; absent takes the project where that is an
    /// absolute path, or else creates one, which is removed with the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<ByteString>,
    /// When it ends without use, in milliseconds; absent takes the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// What every start in it asks for unless it asks for something else, as fields of this object;
    /// `timeout_ms` is the time limit of each execution.
    #[serde(flatten, skip_deserializing)]
    pub options: StartOptions,
}

impl ContextRequestBody {
    /// A request for a project, with every default.
    #[must_use]
    pub fn new(project: impl Into<String>) -> Self {
        Self {
            project: project.into(),
            task: None,
            cwd: None,
            idle_timeout_ms: None,
            options: StartOptions::default(),
        }
    }
}

impl Serialize for ContextRequestBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for ContextRequestBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let place = OptionsPlace {
            after: "idle_timeout_ms",
            without: NOT_FOR_CONTEXTS,
        };
        let mut options = StartOptions::default();
        let body = Self::deserialize(OwnFields::new(from, place, &mut options))?;
        Ok(Self { options, ..body })
    }
}

/// One context. Variables are in it by name only, and so are secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextBody {
    /// Its id, for example `ctx-0a1b2c3d4e5f`.
    pub id: ContextId,
    /// Its project.
    pub project: String,
    /// Its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The session that it belongs to; absent where it belongs to all of its user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The absolute directory that its executions work in.
    pub directory: ByteString,
    /// Whether the directory was created for it, and is removed with it.
    pub directory_created: bool,
    /// `creating`, `idle`, `busy`, `ending` or `failed`.
    pub status: String,
    /// What prevented the removal of its files, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The short ids of the executions that use it, oldest first.
    pub executions: Vec<String>,
    /// The names of its variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<ByteString>,
    /// The names of its secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The isolation level of its executions; absent means that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// The limits of each of its executions, as far as the host can enforce them.
    pub limits: Limits,
    /// The time limit of each of its executions, in milliseconds.
    pub timeout_ms: u64,
    /// When it ends without use, in milliseconds.
    pub idle_timeout_ms: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last use began or ended.
    pub used_at: Timestamp,
    /// When it ends if nothing uses it before; absent while it is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// The answer to `GET /api/v1/contexts`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextsBody {
    /// Every context that the caller sees: their number is limited by a setting.
    pub contexts: Vec<ContextBody>,
}

/// The context that a task runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected true for the project's context, or the id of one"
)]
pub enum ContextChoice {
    /// Whether it runs in the warm context of its project, or a new one.
    OfProject(bool),
    /// This one.
    Id(ContextId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_reads_as_it_is_written_and_takes_no_option_of_one_start() {
        let full = json!({
            "project": "demo", "task": "t1", "cwd": "/srv", "idle_timeout_ms": 5_000,
            "env": [["A", "1"]], "secrets": ["TOKEN"], "timeout_ms": 1_000,
        });
        let body: ContextRequestBody = serde_json::from_value(full.clone()).expect("a request");
        assert_eq!(json!(body), full);
        for option in NOT_FOR_CONTEXTS {
            let bad = json!({"project": "demo", *option: "x"});
            let error = serde_json::from_value::<ContextRequestBody>(bad).expect_err("refused");
            let error = error.to_string();
            assert!(error.contains("unknown field"), "{error}");
            assert!(error.contains("`idle_timeout_ms`, `env`"), "{error}");
        }
    }

    #[test]
    fn a_choice_is_a_flag_or_an_id() {
        let read = |value| serde_json::from_value::<ContextChoice>(value);
        assert_eq!(
            read(json!(true)).expect("a flag"),
            ContextChoice::OfProject(true)
        );
        assert!(read(json!("ctx-0a1b2c3d4e5f")).is_ok());
        let error = read(json!("mine")).expect_err("refused").to_string();
        assert!(error.contains("the id of one"), "{error}");
    }
}
