//! The request of an execution as its client made it, stored beside the resolved specification: a
//! restart, a reload or the same command again starts from this, not from what it was resolved to.
//!
//! Secrets are in it by name only, and what was redacted in the specification is redacted here.
//! The client's environment is not in it.

use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::byte_string::ByteString;
use crate::command::Command;
use crate::context_id::ContextId;
use crate::millis::optional_millis;
use crate::restart_policy::RestartPolicy;
use crate::service::{Dependency, HealthRule, ReadyCondition};
use crate::start_options::StartOptions;
use crate::template_record::TemplateRecord;

/// The version of [`RequestRecord`] that is written.
pub const REQUEST_RECORD_VERSION: u8 = 1;

/// A request as its client made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The format's version, now [`REQUEST_RECORD_VERSION`].
    pub version: u8,
    /// Whether literal texts in it and in the specification are escaped that look like a redacted
    /// secret: the engine says how.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literals_escaped: bool,
    /// The requested command, where it is not the one that is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The requested options, without those that hold for one start only.
    #[serde(default)]
    pub options: StartOptions,
    /// What was requested of it as a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Box<ServiceRecord>>,
    /// The command template that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Box<TemplateRecord>>,
    /// The context that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// Whether it is a task of its project, whose command gets the ids of both in variables.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_task: bool,
}

/// What was requested of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Its name; none where it was derived from the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it counts as ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ReadyCondition>,
    /// A further pattern of lines that report it ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_pattern: Option<String>,
    /// A further pattern of lines that report a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_pattern: Option<String>,
    /// The default timeout of a wait for ready, in milliseconds.
    #[serde(
        default,
        rename = "ready_timeout_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub ready_timeout: Option<Duration>,
    /// When it is started again after its end.
    pub restart: RestartPolicy,
    /// The health rule after ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
    /// The conditions on other services before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// The port it was to be assigned.
    #[serde(default)]
    pub port: PortRequest,
    /// Whether the engine, not the caller, decided that this is a service.
    #[serde(default)]
    pub automatic: bool,
    /// The client's own options, where a definition was applied to them: another version of the
    /// definition is started with the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Box<StartOptions>>,
}

/// The port that a service is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortRequest {
    /// The one its command uses.
    #[default]
    Own,
    /// This port: `PORT` is set and, where the table knows how, arguments are added.
    Fixed(u16),
    /// A free port, leased to it for its lifetime, unique across all sessions.
    Lease,
}

impl RequestRecord {
    /// The record of a request for a command.
    #[must_use]
    pub fn new(options: StartOptions) -> Self {
        Self {
            version: REQUEST_RECORD_VERSION,
            literals_escaped: false,
            command: None,
            options: options.for_every_start(),
            service: None,
            template: None,
            context: None,
            is_task: false,
        }
    }

    /// The record with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        self.command = self.command.map(|command| command.map_words(&change));
        self.options = self.options.map_texts(&change);
        self.template = self
            .template
            .map(|template| Box::new(template.map_values(&change)));
        if let Some(service) = &mut self.service {
            if let Some(base) = &mut service.base {
                **base = std::mem::take(&mut **base).map_texts(&change);
            }
            let ready_when = service.ready_when.take();
            service.ready_when = ready_when.map(|it| it.map_texts(&change));
            let health = service.health.take();
            service.health = health.map(|it| it.map_texts(&change));
        }
        self
    }

    /// Reads a stored record. One that this version does not understand counts as absent: the
    /// specification beside it still says what runs.
    ///
    /// # Errors
    /// As the deserializer, for what is no value at all.
    pub(crate) fn deserialize_known<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Box<Self>>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Record(Box<RequestRecord>),
            Other(IgnoredAny),
        }
        Ok(match Option::<Stored>::deserialize(from)? {
            Some(Stored::Record(record)) if record.version == REQUEST_RECORD_VERSION => {
                Some(record)
            }
            Some(Stored::Record(_) | Stored::Other(_)) | None => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(default, deserialize_with = "RequestRecord::deserialize_known")]
        request: Option<Box<RequestRecord>>,
    }

    fn template(value: &str) -> TemplateRecord {
        TemplateRecord {
            id: "init_project".to_owned(),
            parameters: [("project_name".to_owned(), value.into())].into(),
            confirm: true,
        }
    }

    fn read(value: Value) -> Option<RequestRecord> {
        let holder: Holder = serde_json::from_value(value).expect("a holder");
        holder.request.map(|it| *it)
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let record = RequestRecord {
            command: Some(Command::Argv {
                program: "npm".into(),
                args: vec!["start".into()],
            }),
            service: Some(Box::new(ServiceRecord {
                name: None,
                ready_when: Some(ReadyCondition::Listening),
                ready_pattern: None,
                fail_pattern: Some("error".to_owned()),
                ready_timeout: Some(Duration::from_secs(3)),
                restart: RestartPolicy::Always { max: 2 },
                health: None,
                depends_on: Vec::new(),
                port: PortRequest::Fixed(3_000),
                automatic: true,
                base: Some(Box::default()),
            })),
            template: Some(Box::new(template("demo"))),
            context: Some(ContextId::from_bytes([7; 6])),
            ..RequestRecord::new(StartOptions {
                timeout: Some(Duration::from_millis(5)),
                ..StartOptions::default()
            })
        };
        assert_eq!(read(json!({"request": record})), Some(record));
    }

    #[test]
    fn what_is_not_understood_is_absent() {
        for request in [
            json!(null),
            json!(7),
            json!({"version": 2, "options": {}}),
            json!({"version": 1, "options": {"an_option_of_later": 1}}),
        ] {
            assert_eq!(read(json!({"request": request})), None, "{request}");
        }
        assert_eq!(read(json!({})), None);
        let known = read(json!({"request": {"version": 1, "field_of_later": 1}}));
        assert_eq!(known, Some(RequestRecord::new(StartOptions::default())));
    }

    #[test]
    fn options_of_one_start_are_not_kept() {
        let record = RequestRecord::new(StartOptions {
            approval: Some("x".to_owned()),
            queue_timeout: Some(Duration::ZERO),
            ..StartOptions::default()
        });
        assert_eq!(record.options, StartOptions::default());
    }

    #[test]
    fn every_text_that_may_hold_a_secret_is_changed() {
        let secret = || ByteString::from("hunter2");
        let options = || StartOptions {
            set_env: vec![("A".into(), secret())],
            labels: vec!["hunter2".to_owned()],
            description: "hunter2".to_owned(),
            ..StartOptions::default()
        };
        let mut record = RequestRecord::new(options());
        record.command = Some(Command::Shell {
            shell: "/bin/sh".into(),
            script: secret(),
        });
        record.template = Some(Box::new(template("hunter2")));
        record.service = Some(Box::new(ServiceRecord {
            name: None,
            ready_when: Some(ReadyCondition::Exec {
                argv: vec![secret()],
            }),
            ready_pattern: None,
            fail_pattern: None,
            ready_timeout: None,
            restart: RestartPolicy::Never,
            health: Some(HealthRule {
                probe: ReadyCondition::Http {
                    target: "/?t=hunter2".to_owned(),
                },
                interval: None,
                failures: 0,
                restart: false,
            }),
            depends_on: Vec::new(),
            port: PortRequest::Own,
            automatic: false,
            base: Some(Box::new(options())),
        }));
        let hidden = record.map_texts(|text| text.to_string().replace("hunter2", "***").into());
        let stored = json!(hidden).to_string();
        assert!(!stored.contains("hunter2"), "{stored}");
        assert_eq!(stored.matches("***").count(), 10);
    }
}
