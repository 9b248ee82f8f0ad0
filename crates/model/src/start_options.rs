//! The options of a start, which every way to start a command shares: REST, the command line,
//! definitions of services, the library, and the stored request.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::alert::AlertThresholds;
use crate::backend_name::BackendName;
use crate::byte_string::ByteString;
use crate::container::ContainerOptions;
use crate::default_value::is_default;
use crate::isolation::{IsolationLevel, Limits};
use crate::millis::{optional_millis, whole_millis};
use crate::sandbox_options::SandboxOptions;
use crate::term_size::TermSize;

/// What a start may ask for besides the command and its working directory. Every field may be
/// absent: the setting or the level's default is in force then. In JSON, durations are
/// milliseconds, and unknown fields are refused.
///
/// A new option is a field here, with what [`StartOptions::over`] does with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartOptions {
    /// Environment variables added or replaced.
    #[serde(default, rename = "env", skip_serializing_if = "Vec::is_empty")]
    pub set_env: Vec<(ByteString, ByteString)>,
    /// Whether all of the client's environment is passed on; none takes the setting. Nothing of it is
    /// passed to a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// The wall-clock limit of the command, in milliseconds.
    #[serde(
        default,
        rename = "timeout_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<Duration>,
    /// The limit of time without output, in milliseconds.
    #[serde(
        default,
        rename = "idle_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub idle: Option<Duration>,
    /// The isolation level; none takes the setting.
    #[serde(default, rename = "isolation", skip_serializing_if = "Option::is_none")]
    pub level: Option<IsolationLevel>,
    /// The backend that runs it: `local` or `container`; none takes the one of the isolation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendName>,
    /// Its container; must be the default elsewhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub container: Box<ContainerOptions>,
    /// What isolation level high exposes and reaches beyond its defaults; must be the default at
    /// other levels.
    #[serde(default, rename = "confine", skip_serializing_if = "is_default")]
    pub sandbox: SandboxOptions,
    /// Names of secrets whose values go into the environment under the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The id of the interaction in which a person approved, where the command policy requires
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The longest wait for a slot while the quota is used up, in milliseconds; the default and the
    /// maximum are 45 s. 0 is refused at once.
    #[serde(
        default,
        rename = "place_wait_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub queue_timeout: Option<Duration>,
    /// Limits of its tree; none of a field takes the level's default.
    #[serde(
        default,
        deserialize_with = "strict::limits",
        skip_serializing_if = "is_default"
    )]
    pub limits: Limits,
    /// From which use on somebody is told, where that differs from the settings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub alerts: AlertThresholds,
    /// Labels, by which lists can be filtered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The encoding of its output: a WHATWG label, or `auto`; none takes the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// How long it is kept after its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retention: RetentionRequest,
    /// Whether it outlives its session.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: bool,
    /// Whether what is written to its input is recorded as stream `stdin` of its journal: not while
    /// its terminal has echo off, and without secrets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub record_input: bool,
    /// A terminal of this size instead of pipes.
    #[serde(
        default,
        deserialize_with = "strict::pty",
        skip_serializing_if = "Option::is_none"
    )]
    pub pty: Option<TermSize>,
    /// The only programs that may run, in addition to the settings' own list: a request can
    /// tighten, never loosen. None adds nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
}

/// How long an execution is kept after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionRequest {
    /// The settings' default for the API surface.
    #[default]
    Default,
    /// This long; in JSON milliseconds, as `{"for_ms": 60000}`.
    #[serde(rename = "for_ms")]
    For(#[serde(with = "whole_millis")] Duration),
    /// Until it is cleaned.
    Forever,
}

impl StartOptions {
    /// These options, and those of `base` where they ask for nothing: variables and secrets are
    /// those of both, the isolation level is the higher one, limits and what is asked of the sandbox
    /// are taken one by one.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let Self {
            set_env,
            secrets,
            labels,
            ..
        } = base;
        Self {
            set_env: merged_variables(set_env, self.set_env),
            inherit_env: self.inherit_env.or(base.inherit_env),
            timeout: self.timeout.or(base.timeout),
            idle: self.idle.or(base.idle),
            level: self.level.max(base.level),
            backend: self.backend.or(base.backend),
            container: Box::new(self.container.over(*base.container)),
            sandbox: self.sandbox.over(base.sandbox),
            secrets: merged_names(secrets, self.secrets),
            approval: self.approval.or(base.approval),
            queue_timeout: self.queue_timeout.or(base.queue_timeout),
            limits: self.limits.or(base.limits),
            alerts: self.alerts.or(base.alerts),
            labels: merged_names(labels, self.labels),
            description: or_default(self.description, base.description),
            encoding: self.encoding.or(base.encoding),
            retention: or_default(self.retention, base.retention),
            keep: self.keep || base.keep,
            record_input: self.record_input || base.record_input,
            pty: self.pty.or(base.pty),
            allowed: self.allowed.or(base.allowed),
        }
    }

    /// The options without those that hold for one start only.
    #[must_use]
    pub fn for_every_start(self) -> Self {
        Self {
            approval: None,
            queue_timeout: None,
            ..self
        }
    }

    /// The options that belong to a definition of a service: all but those of its client and of one
    /// start.
    #[must_use]
    pub fn for_definition(self) -> Self {
        Self {
            timeout: None,
            idle: None,
            encoding: None,
            retention: RetentionRequest::Default,
            keep: false,
            allowed: None,
            ..self.for_every_start()
        }
    }

    /// The options with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        let text = |it: String| change(&ByteString::from(it)).to_string();
        for (_, value) in &mut self.set_env {
            *value = change(value);
        }
        self.labels = self.labels.into_iter().map(text).collect();
        self.description = text(self.description);
        self
    }
}

/// The variables of `base` that `own` does not replace, and those of `own`.
fn merged_variables(
    mut base: Vec<(ByteString, ByteString)>,
    own: Vec<(ByteString, ByteString)>,
) -> Vec<(ByteString, ByteString)> {
    base.retain(|(name, _)| own.iter().all(|(replaced, _)| replaced != name));
    base.extend(own);
    base
}

fn merged_names(mut base: Vec<String>, mut own: Vec<String>) -> Vec<String> {
    own.retain(|name| !base.contains(name));
    base.extend(own);
    base
}

fn or_default<T: Default + PartialEq>(own: T, base: T) -> T {
    if own == T::default() { base } else { own }
}

/// Types of the model that ignore unknown fields, because they are stored in newer versions, too:
/// in a request, that would silently drop an option.
mod strict {
    use serde::{Deserialize, Deserializer};

    use super::{Limits, TermSize};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LimitsBody {
        pids: Option<u32>,
        memory_bytes: Option<u64>,
        cpu_millis: Option<u32>,
        open_files: Option<u32>,
        file_bytes: Option<u64>,
        disk_bytes: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SizeBody {
        cols: u16,
        rows: u16,
    }

    pub(super) fn limits<'de, D: Deserializer<'de>>(from: D) -> Result<Limits, D::Error> {
        let body = LimitsBody::deserialize(from)?;
        Ok(Limits {
            pids: body.pids,
            memory_bytes: body.memory_bytes,
            cpu_millis: body.cpu_millis,
            open_files: body.open_files,
            file_bytes: body.file_bytes,
            disk_bytes: body.disk_bytes,
        })
    }

    pub(super) fn pty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TermSize>, D::Error> {
        let body = Option::<SizeBody>::deserialize(from)?;
        Ok(body.map(|SizeBody { cols, rows }| TermSize { cols, rows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every option, as JSON.
    fn full() -> serde_json::Value {
        json!({
            "env": [["A", "1"]],
            "inherit_env": true,
            "timeout_ms": 1_000,
            "idle_ms": 500,
            "isolation": "high",
            "backend": "container",
            "container": {"image": "work", "volumes": [{"host": "/a", "container": "/b"}]},
            "confine": {"overlay": true, "network": ["a.example"], "forward": ["8080:80"]},
            "secrets": ["TOKEN"],
            "approval": "abc",
            "place_wait_ms": 0,
            "limits": {"pids": 5},
            "labels": ["x"],
            "description": "what",
            "encoding": "auto",
            "retention": {"for_ms": 60_000},
            "keep": true,
            "record_input": true,
            "pty": {"cols": 80, "rows": 24},
            "allowed": ["ls"],
        })
    }

    #[test]
    fn every_option_reads_as_it_is_written() {
        let options: StartOptions = serde_json::from_value(full()).unwrap();
        assert_eq!(json!(options), full());
        assert_eq!(json!(StartOptions::default()), json!({}));
    }

    #[test]
    fn every_option_is_taken_from_the_base_where_there_is_none() {
        let options: StartOptions = serde_json::from_value(full()).unwrap();
        let none = StartOptions::default;
        assert_eq!(none().over(options.clone()), options);
        assert_eq!(options.clone().over(none()), options);
    }

    #[test]
    fn options_of_both_are_combined() {
        let read = |value| serde_json::from_value::<StartOptions>(value).unwrap();
        let own = read(json!({
            "env": [["A", "2"]], "isolation": "medium", "secrets": ["B"],
            "confine": {"read": ["/srv"], "network": "none"},
        }));
        let combined = own.over(read(full()));
        assert_eq!(combined.set_env, [("A".into(), "2".into())]);
        assert_eq!(combined.level, Some(IsolationLevel::High));
        assert_eq!(combined.secrets, ["TOKEN", "B"]);
        let sandbox = json!({
            "overlay": true, "network": "none", "read": ["/srv"], "forward": ["8080:80"],
        });
        assert_eq!(json!(combined.sandbox), sandbox);
    }

    #[test]
    fn unknown_fields_are_refused_at_every_depth() {
        for body in [
            json!({"time_out": 1}),
            json!({"limits": {"disk": 1}}),
            json!({"pty": {"cols": 1, "rows": 1, "depth": 1}}),
            json!({"confine": {"netwrk": "none"}}),
            json!({"container": {"privileged": true}}),
        ] {
            let error = serde_json::from_value::<StartOptions>(body).unwrap_err();
            assert!(error.to_string().contains("unknown field"), "{error}");
        }
    }
}
