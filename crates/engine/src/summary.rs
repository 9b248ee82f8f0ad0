//! An ended command as the registry keeps it: what was asked and what became of it as text, in a
//! tenth of the room, from which the entry is made again when somebody asks for it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ostler_model::spec::Io;
use ostler_model::status::ProcessStatus;
use ostler_model::{ExecutionId, Lifetime, Owner, Spec, State};
use serde_json::{Map, Value};

use crate::entry::{EndedFields, Entry};

/// Fields of a spec that differ from command to command; the others are shared.
const OWN_FIELDS: [&str; 4] = ["command", "cwd", "description", "labels"];
/// Texts that are shared at most.
const SHARED_MAX: usize = 256;

/// A state before anything happens.
static INITIAL: LazyLock<Map<String, Value>> =
    LazyLock::new(|| object(&State::default()).unwrap_or_default());

/// Parts that many summaries have in common.
#[derive(Debug, Default)]
pub(crate) struct SharedParts {
    texts: Vec<Arc<str>>,
    owners: Vec<Arc<Owner>>,
}

impl SharedParts {
    fn text(&mut self, text: String) -> Arc<str> {
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

    fn owner(&mut self, owner: &Arc<Owner>) -> Arc<Owner> {
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

/// One ended command.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) id: ExecutionId,
    pub(crate) owner: Arc<Owner>,
    pub(crate) status: ProcessStatus,
    remains: EndedFields,
    /// What its spec shares with others.
    shared: Arc<str>,
    /// What of its spec is its own.
    own: Box<str>,
    /// What of its state is not as it is before anything happens.
    state: Box<str>,
}

impl Summary {
    /// Of an entry that nobody else has; none where it must stay as it is.
    pub(crate) fn of(entry: &Entry, shared: &mut SharedParts) -> Option<Self> {
        let is_command = matches!(entry.spec.lifetime, Lifetime::Finite { .. })
            && matches!(entry.spec.io, Io::Pipes { .. });
        if !is_command {
            return None;
        }
        let remains = entry.remains()?;
        let info = entry.info();
        let mut spec = object(&*entry.spec)?;
        let own: Map<String, Value> = OWN_FIELDS
            .into_iter()
            .filter_map(|name| spec.remove_entry(name))
            .collect();
        let summary = Self {
            id: entry.id,
            owner: shared.owner(&info.owner),
            status: info.status().process,
            remains,
            shared: shared.text(serde_json::to_string(&spec).ok()?),
            own: serde_json::to_string(&own).ok()?.into(),
            state: state_text(&info.state)?.into(),
        };
        // Nothing may be told otherwise afterwards.
        let is_same = summary.spec().is_some_and(|it| it == *entry.spec)
            && summary.state().is_some_and(|it| it == info.state);
        is_same.then_some(summary)
    }

    /// The entry it was made of; `executions` is where they are kept.
    pub(crate) fn entry(&self, executions: &Path) -> Option<Arc<Entry>> {
        let whose = (self.id, Arc::new(self.spec()?), Arc::clone(&self.owner));
        let dir = executions.join(self.id.to_string());
        Some(Entry::again(whose, dir, self.state()?, self.remains))
    }

    fn spec(&self) -> Option<Spec> {
        let mut spec: Map<String, Value> = serde_json::from_str(&self.shared).ok()?;
        let mut own: Map<String, Value> = serde_json::from_str(&self.own).ok()?;
        spec.append(&mut own);
        serde_json::from_value(Value::Object(spec)).ok()
    }

    fn state(&self) -> Option<State> {
        let mut state = INITIAL.clone();
        let mut changed: Map<String, Value> = serde_json::from_str(&self.state).ok()?;
        state.append(&mut changed);
        serde_json::from_value(Value::Object(state)).ok()
    }
}

fn state_text(state: &State) -> Option<String> {
    let mut changed = object(state)?;
    changed.retain(|name, value| INITIAL.get(name) != Some(value));
    serde_json::to_string(&changed).ok()
}

fn object(value: &impl serde::Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_model::ending::{Cause, Ending};
    use ostler_model::spec::Stdin;
    use ostler_model::{
        Command, Environment, Event, EventRecord, IsolationLevel, LimitBackend, Limits, PlaceName,
        Policy, Principal, Text, Timestamp,
    };

    use super::*;

    fn owner() -> Owner {
        Owner {
            principal: Principal::unix(1_000),
            project: Some("/home/user/project".to_owned()),
            session: None,
            task: None,
            channel: ostler_model::Channel::Local,
        }
    }

    fn spec(number: usize) -> Spec {
        Spec {
            command: Command::Argv {
                program: Text::from("true"),
                args: vec![Text::from(number.to_string())],
            },
            cwd: Text::from("/home/user/project"),
            env: Environment::default(),
            io: Io::Pipes {
                stdin: Stdin::Empty,
            },
            lifetime: Lifetime::Finite {
                timeout: Some(Duration::from_secs(60)),
                idle: None,
            },
            policy: Policy {
                level: IsolationLevel::Medium,
                confinement: None,
                limits: Limits::default(),
                backend: LimitBackend::None,
                in_force: Vec::new(),
                missing: Vec::new(),
            },
            place: PlaceName::local(),
            owner: owner(),
            description: String::new(),
            labels: vec!["nightly".to_owned()],
            encoding: None,
            retention: Some(Duration::from_secs(86_400)),
            keep: false,
            face: Some("mcp".to_owned()),
            shell: None,
        }
    }

    fn ended(number: usize) -> Arc<Entry> {
        let ending = Ending::without_status(Cause::Signaled);
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
        let whose = (id, Arc::new(spec(number)), Arc::new(owner()));
        Entry::ended(whose, id.to_string().into(), State::fold(&records), 12)
    }

    #[test]
    fn an_entry_is_made_again_as_it_was() {
        let entry = ended(1);
        let summary = Summary::of(&entry, &mut SharedParts::default()).expect("it has ended");
        let again = summary.entry(Path::new("")).expect("it can be made again");
        let told = |entry: &Entry| format!("{:?} {:?}", entry.info(), entry.dir);
        assert_eq!(told(&again), told(&entry));
        assert_eq!(again.remains(), entry.remains());
        assert!(again.marks.borrow().finished);
    }

    #[test]
    fn what_somebody_hears_of_stays_as_it_is() {
        let entry = ended(1);
        let heard = entry.live.subscribe();
        assert!(Summary::of(&entry, &mut SharedParts::default()).is_none());
        drop(heard);
        assert!(Summary::of(&entry, &mut SharedParts::default()).is_some());
    }

    #[test]
    fn a_summary_takes_less_than_a_kilobyte() {
        let mut shared = SharedParts::default();
        let summary = |number| Summary::of(&ended(number), &mut shared).expect("it has ended");
        let all: Vec<Summary> = (0..100).map(summary).collect();
        let own = all.iter().map(|it| it.own.len() + it.state.len());
        assert!(own.max().expect("some") + size_of::<Summary>() < 600);
        assert_eq!((shared.texts.len(), shared.owners.len()), (1, 1));
    }
}
