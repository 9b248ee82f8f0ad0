//! The compact form of an ended command in the registry: its spec and state encoded, in a tenth
//! of the memory, from which the handle is restored on demand.

use std::path::Path;
use std::sync::Arc;

use ostler_model::spec::Io;
use ostler_model::status::ProcessStatus;
use ostler_model::{ExecutionId, Lifetime, Owner, Spec, State};
use serde::de::DeserializeOwned;

use crate::execution::{EndedFields, ExecutionHandle, ExecutionIdentity};
use crate::info::ExecutionInfo;

mod template;
mod values;

use values::ScalarList;

/// Fields of a spec that differ between commands; the others are shared.
const OWN_FIELDS: [&str; 5] = ["command", "cwd", "description", "labels", "request"];
/// The most shared texts.
const SHARED_MAX: usize = 256;

/// Interned texts that many summaries have in common.
#[derive(Debug, Default)]
pub(crate) struct SummaryInterner {
    texts: Vec<Arc<str>>,
    owners: Vec<Arc<Owner>>,
}

impl SummaryInterner {
    fn intern_text(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.iter().rev().find(|it| ***it == *text) {
            return Arc::clone(known);
        }
        if self.texts.len() >= SHARED_MAX {
            self.texts.retain(|it| Arc::strong_count(it) > 1);
        }
        if self.texts.len() >= SHARED_MAX {
            self.texts.clear();
        }
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        text
    }

    fn intern_owner(&mut self, owner: &Arc<Owner>) -> Arc<Owner> {
        if let Some(known) = self.owners.iter().rev().find(|it| *it == owner) {
            return Arc::clone(known);
        }
        if self.owners.len() >= SHARED_MAX {
            self.owners.clear();
        }
        self.owners.push(Arc::clone(owner));
        Arc::clone(owner)
    }
}

/// The summary of one ended command.
#[derive(Debug)]
pub(crate) struct ExecutionSummary {
    pub(crate) id: ExecutionId,
    pub(crate) owner: Arc<Owner>,
    pub(crate) status: ProcessStatus,
    ended_fields: EndedFields,
    /// The template of its spec.
    spec: Arc<str>,
    /// The template of its state.
    state: Arc<str>,
    /// What both leave out, encoded.
    values: Box<[u8]>,
}

impl ExecutionSummary {
    /// Summarizes a handle with this `info`; none where it must stay complete.
    pub(crate) fn from_execution(
        entry: &ExecutionHandle,
        info: &ExecutionInfo,
        shared: &mut SummaryInterner,
    ) -> Option<Self> {
        let is_command = matches!(entry.spec.lifetime, Lifetime::Finite { .. })
            && matches!(entry.spec.io, Io::Pipes { .. });
        if !is_command {
            return None;
        }
        let ended_fields = entry.ended_fields()?;
        let mut values = ScalarList::default();
        let spec = template::split(&*entry.spec, is_own_field, &mut values)?;
        let state = template::split(&info.state, |_| true, &mut values)?;
        let summary = Self {
            id: entry.id,
            owner: shared.intern_owner(&info.owner),
            status: info.status().process,
            ended_fields,
            spec: shared.intern_text(spec),
            state: shared.intern_text(state),
            values: values.encode()?.into(),
        };
        // The restored spec must be identical.
        let is_same = summary.spec().is_some_and(|it| it == *entry.spec)
            && summary.state().is_some_and(|it| it == info.state);
        is_same.then_some(summary)
    }

    /// Whether nothing has changed in the handle since it was summarized with this `info`.
    pub(crate) fn is_current(&self, entry: &ExecutionHandle, info: &ExecutionInfo) -> bool {
        let now = entry.info();
        entry.ended_fields() == Some(self.ended_fields)
            && now.owner == info.owner
            && now.state == info.state
    }

    /// Restores the handle; `executions` is the directory of all executions.
    pub(crate) fn restore(&self, executions: &Path) -> Option<Arc<ExecutionHandle>> {
        let identity = ExecutionIdentity {
            id: self.id,
            spec: Arc::new(self.spec()?),
            owner: Arc::clone(&self.owner),
            dir: executions.join(self.id.to_string()),
        };
        Some(ExecutionHandle::restore_ended(
            identity,
            self.state()?,
            self.ended_fields,
        ))
    }

    fn spec(&self) -> Option<Spec> {
        let values = ScalarList::decode(&self.values)?;
        restore(&self.spec, values.as_json())
    }

    fn state(&self) -> Option<State> {
        let values = ScalarList::decode(&self.values)?;
        restore(
            &self.state,
            values.as_json().skip(template::places(&self.spec)),
        )
    }
}

/// Whether this field of a spec differs between commands; the others are shared.
fn is_own_field(name: &str) -> bool {
    OWN_FIELDS.contains(&name)
}

fn restore<T: DeserializeOwned>(
    template: &str,
    mut values: impl Iterator<Item = Option<String>>,
) -> Option<T> {
    let json = template::fill(template, &mut values)?;
    serde_json::from_str(&json).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_model::spec::StdinSource;
    use ostler_model::termination::{Termination, TerminationCause};
    use ostler_model::{
        BackendName, ByteString, Command, Environment, Event, EventRecord, IsolationLevel,
        IsolationSpec, LimitBackend, Limits, Principal, Timestamp,
    };

    use super::*;

    fn owner() -> Owner {
        Owner {
            principal: Principal::unix(1_000),
            project: Some("/home/user/project".to_owned()),
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        }
    }

    fn spec(number: usize) -> Spec {
        Spec {
            command: Command::Argv {
                program: ByteString::from("true"),
                args: vec![ByteString::from(number.to_string())],
            },
            cwd: ByteString::from("/home/user/project"),
            env: Environment::default(),
            io: Io::Pipes {
                stdin: StdinSource::Empty,
            },
            lifetime: Lifetime::Finite {
                timeout: Some(Duration::from_secs(60)),
                idle: None,
            },
            policy: IsolationSpec {
                level: IsolationLevel::Medium,
                confinement: None,
                limits: Limits::default(),
                backend: LimitBackend::None,
                in_force: Vec::new(),
                missing: Vec::new(),
            },
            place: BackendName::local(),
            container: None,
            owner: owner(),
            description: String::new(),
            labels: vec!["nightly".to_owned()],
            encoding: None,
            retention: Some(Duration::from_secs(86_400)),
            keep: false,
            record_input: false,
            face: Some("mcp".to_owned()),
            shell: None,
            request: None,
        }
    }

    fn ended(number: usize) -> Arc<ExecutionHandle> {
        let ending = Termination::without_status(TerminationCause::Signaled);
        let events = [
            Event::Created {
                missing: Vec::new(),
            },
            Event::Started {
                attempt: 1,
                pid: 77,
            },
            Event::Finished { ending },
        ];
        let records: Vec<EventRecord> = (0..)
            .zip(events)
            .map(|(seq, event)| EventRecord {
                seq,
                at: Timestamp::UNIX_EPOCH + Duration::from_millis(seq),
                offset: 12,
                event,
            })
            .collect();
        let id = ExecutionId::mint();
        let identity = ExecutionIdentity {
            id,
            spec: Arc::new(spec(number)),
            owner: Arc::new(owner()),
            dir: id.to_string().into(),
        };
        ExecutionHandle::new_ended(identity, State::fold(&records), 12)
    }

    fn summarize(
        entry: &ExecutionHandle,
        shared: &mut SummaryInterner,
    ) -> Option<ExecutionSummary> {
        ExecutionSummary::from_execution(entry, &entry.info(), shared)
    }

    #[test]
    fn a_summary_is_out_of_date_once_its_execution_has_changed() {
        let entry = ended(1);
        let info = entry.info();
        let summary =
            ExecutionSummary::from_execution(&entry, &info, &mut SummaryInterner::default());
        let summary = summary.expect("it has ended");
        assert!(summary.is_current(&entry, &info));
        entry.set_owner(Owner {
            project: None,
            ..owner()
        });
        assert!(!summary.is_current(&entry, &info));
    }

    #[test]
    fn an_entry_is_made_again_as_it_was() {
        let entry = ended(1);
        let summary = summarize(&entry, &mut SummaryInterner::default()).expect("it has ended");
        let again = summary
            .restore(Path::new(""))
            .expect("it can be made again");
        let actual = |entry: &ExecutionHandle| format!("{:?} {:?}", entry.info(), entry.dir);
        assert_eq!(actual(&again), actual(&entry));
        assert_eq!(again.ended_fields(), entry.ended_fields());
        assert!(again.journal_end.borrow().finished);
    }

    #[test]
    fn watched_executions_are_not_summarized() {
        let entry = ended(1);
        let received = entry.live.subscribe();
        assert!(summarize(&entry, &mut SummaryInterner::default()).is_none());
        drop(received);
        assert!(summarize(&entry, &mut SummaryInterner::default()).is_some());
    }

    #[test]
    fn a_summary_takes_less_than_300_bytes() {
        let mut shared = SummaryInterner::default();
        let summary = |number| summarize(&ended(number), &mut shared).expect("it has ended");
        let all: Vec<ExecutionSummary> = (0..100).map(summary).collect();
        let own = all.iter().map(|it| it.values.len()).max().expect("some");
        let total = own + size_of::<ExecutionSummary>();
        assert!(total < 300, "{total}");
        assert_eq!((shared.texts.len(), shared.owners.len()), (2, 1));
    }
}
