//! Requests about services.

use std::time::Duration;

use ostler_model::{
    ByteString, Dependency, DependencyCondition, HealthRule, IsolationLevel, ReadyCondition,
    is_default,
};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::objects_only::ObjectsOnly;
use super::parts;
use super::start::StartBody;

/// `POST /api/v1/services`, `POST /api/v1/services/ensure` and `PUT /api/v1/services/{name}`: the
/// fields of a start and those of a service in one object; `restart` is that of the service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceStartBody {
    /// The command and its start options.
    #[serde(flatten)]
    pub start: StartBody,
    /// The service options.
    #[serde(flatten)]
    pub service: ServiceOptionsBody,
}

/// The options of a service besides its command. Durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOptionsBody {
    /// Its name; absent derives one from the framework or the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The condition of its readiness; absent means that of the detection table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ProbeBody>,
    /// An additional pattern of lines that show readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_pattern: Option<String>,
    /// An additional pattern of lines that show failure; it takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_pattern: Option<String>,
    /// The default timeout of a wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout_ms: Option<u64>,
    /// The health check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRuleBody>,
    /// Its dependencies: names, or `{"name", "condition"}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyBody>,
    /// Its port: a number, or `auto` for a free one that is assigned to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortRequestBody>,
    /// Present: wait until it is ready, at most this long; the response has the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// `POST /api/v1/services/up`: defined services, with all of their dependencies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpBody {
    /// The absolute directory from which `ostler.toml` is searched upwards.
    pub cwd: ByteString,
    /// The names; none means all that are defined there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The environment of the requesting client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_env: Vec<(ByteString, ByteString)>,
    /// Whether all of `base_env` is passed on; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// The isolation level of services whose definition sets none; absent means the daemon's
    /// setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// The only programs that may run, in addition to the daemon's own allow list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// The id of the interaction in which a person gave approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Whether the client is the command line.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cli: bool,
    /// Present: wait until each is ready, at most this many milliseconds. What waits for a dependency
    /// then is `pending` in the response. Absent: wait until the program of each runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// A condition to check: a word, or an object with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeBody {
    /// The default of the kind of program.
    Auto,
    /// A port of its tree is listening.
    Listening,
    /// Its main port responds.
    Responding,
    /// A line matches `ready_pattern`, or a pattern of the detection table.
    Log,
    /// `{"http": "/health"}`: a status from 200 to 399 for a path on its main port or a whole URL.
    Http(String),
    /// `{"tcp": 5432}`: this port accepts a connection.
    Tcp(u16),
    /// `{"exec": ["pg_isready"]}`: this command exits with 0.
    Exec(Vec<ByteString>),
    /// `READY=1` over `NOTIFY_SOCKET`.
    Notify,
    /// `{"quiet_ms": 5000}`: this long without output.
    QuietMs(u64),
}

/// The health check of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthRuleBody {
    /// The check: `listening`, `responding`, `http`, `tcp` or `exec`.
    pub probe: ProbeBody,
    /// The interval between two checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<u64>,
    /// Consecutive failures until it counts as unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// Whether an unhealthy one is ended, so that its restart policy applies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restart: bool,
}

/// A dependency: a name, or a name and a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a name, or {\"name\", \"condition\"} with started, listening, ready or completed"
)]
pub enum DependencyBody {
    /// It must be ready.
    Name(String),
    /// It must meet this condition.
    WithCondition(DependencyConditionBody),
}

/// A dependency with its condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DependencyConditionBody {
    /// The name of the service.
    pub name: String,
    /// The condition it must meet.
    pub condition: DependencyCondition,
}

/// The port of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortRequestBody {
    /// A fixed port.
    Number(u16),
    /// A free port, assigned to it.
    Auto,
}

impl ServiceStartBody {
    /// A service with default options.
    #[must_use]
    pub fn new(start: StartBody) -> Self {
        Self {
            start,
            service: ServiceOptionsBody::default(),
        }
    }
}

impl<'de> Deserialize<'de> for ServiceStartBody {
    /// Two bodies in one object, each of which refuses unknown fields: each parses its own.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(from)?;
        let service_fields = parts::field_names::<ServiceOptionsBody>()
            .iter()
            .filter_map(|field| fields.remove_entry(*field))
            .collect();
        Ok(Self {
            service: parse_part(service_fields).map_err(D::Error::custom)?,
            start: parse_part(fields).map_err(D::Error::custom)?,
        })
    }
}

/// Parses one of the two bodies; the error names the position.
fn parse_part<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    let fields = ObjectsOnly(Value::Object(fields));
    serde_path_to_error::deserialize(fields).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => error.inner().to_string(),
            path => format!("field '{path}': {}", error.inner()),
        }
    })
}

impl From<ProbeBody> for ReadyCondition {
    fn from(body: ProbeBody) -> Self {
        match body {
            ProbeBody::Auto => Self::Auto,
            ProbeBody::Listening => Self::Listening,
            ProbeBody::Responding => Self::Responding,
            ProbeBody::Log => Self::Log,
            ProbeBody::Http(target) => Self::Http { target },
            ProbeBody::Tcp(port) => Self::Tcp { port },
            ProbeBody::Exec(argv) => Self::Exec { argv },
            ProbeBody::Notify => Self::Notify,
            ProbeBody::QuietMs(ms) => Self::Quiet { ms },
        }
    }
}

impl From<&ReadyCondition> for ProbeBody {
    fn from(condition: &ReadyCondition) -> Self {
        match condition {
            ReadyCondition::Auto => Self::Auto,
            ReadyCondition::Listening => Self::Listening,
            ReadyCondition::Responding => Self::Responding,
            ReadyCondition::Log => Self::Log,
            ReadyCondition::Http { target } => Self::Http(target.clone()),
            ReadyCondition::Tcp { port } => Self::Tcp(*port),
            ReadyCondition::Exec { argv } => Self::Exec(argv.clone()),
            ReadyCondition::Notify => Self::Notify,
            ReadyCondition::Quiet { ms } => Self::QuietMs(*ms),
        }
    }
}

impl From<HealthRuleBody> for HealthRule {
    fn from(body: HealthRuleBody) -> Self {
        Self {
            probe: body.probe.into(),
            interval: body.interval_ms.map(Duration::from_millis),
            failures: body.failures.unwrap_or_default(),
            restart: body.restart,
        }
    }
}

impl From<DependencyBody> for Dependency {
    fn from(body: DependencyBody) -> Self {
        match body {
            DependencyBody::Name(name) => Self {
                name,
                condition: DependencyCondition::default(),
            },
            DependencyBody::WithCondition(dependency) => Self {
                name: dependency.name,
                condition: dependency.condition,
            },
        }
    }
}

impl std::str::FromStr for PortRequestBody {
    type Err = String;

    /// `auto`, or a number from 1 to 65535.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(port)) if port > 0 => Ok(Self::Number(port)),
            _ => Err("allowed: a port from 1 to 65535, or auto".to_owned()),
        }
    }
}

impl Serialize for PortRequestBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(port) => to.serialize_u16(*port),
            Self::Auto => to.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for PortRequestBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a port from 1 to 65535, or \"auto\"")]
        enum PortNumberOrWord {
            Number(u64),
            Word(String),
        }
        let text = match PortNumberOrWord::deserialize(from)? {
            PortNumberOrWord::Number(number) => number.to_string(),
            PortNumberOrWord::Word(word) => word,
        };
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(mut more: Value) -> Result<ServiceStartBody, String> {
        more["command"] = json!({"shell": {"shell": "/bin/sh", "script": "npm run dev"}});
        more["cwd"] = json!("/srv");
        serde_json::from_value(more).map_err(|error| error.to_string())
    }

    #[test]
    fn both_halves_are_read_and_reported_as_given() {
        let given = json!({
            "name": "web",
            "restart": {"on_failure": {"max": 3}},
            "ready_when": {"http": "/health"},
            "ready_pattern": "listening",
            "ready_timeout_ms": 5_000,
            "health": {"probe": "responding", "interval_ms": 100},
            "depends_on": ["db", {"name": "cache", "condition": "started"}],
            "port": "auto",
            "wait_ms": 1,
        });
        let body = read(given.clone()).unwrap();
        let actual = json!(body);
        for (field, value) in given.as_object().unwrap() {
            assert_eq!(&actual[field], value, "{field}");
        }
        assert_eq!(
            read(json!({"port": 3000})).unwrap().service.port,
            Some(PortRequestBody::Number(3_000))
        );
    }

    #[test]
    fn every_probe_is_parsed_as_written() {
        for probe in [
            json!("auto"),
            json!("log"),
            json!({"tcp": 5432}),
            json!({"exec": ["true", "x"]}),
            json!({"quiet_ms": 10}),
        ] {
            let body: ProbeBody = serde_json::from_value(probe.clone()).unwrap();
            let when = ReadyCondition::from(body);
            assert_eq!(json!(ProbeBody::from(&when)), probe);
        }
    }

    #[test]
    fn invalid_values_are_reported_with_position_and_what_is_allowed() {
        for (body, expected) in [
            (json!({"nmae": "web"}), "unknown field `nmae`"),
            (
                json!({"port": 0}),
                "field 'port': allowed: a port from 1 to 65535, or auto",
            ),
            (json!({"port": []}), "field 'port': "),
            (
                json!({"ready_when": "soon"}),
                "field 'ready_when': unknown variant `soon`, expected one of",
            ),
            (json!({"depends_on": [7]}), "field 'depends_on[0]': "),
            (
                json!({"health": {"probe": "listening", "every": 1}}),
                "unknown field `every`",
            ),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
