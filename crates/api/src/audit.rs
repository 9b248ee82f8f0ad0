//! The audit log.

use std::collections::BTreeMap;

use ostler_model::{Event, ExecutionId, Owner, Timestamp};
use serde::{Deserialize, Serialize};

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntryBody {
    /// Its number, from 0.
    pub seq: u64,
    /// Its hash in lowercase hexadecimal; it covers the hash of the entry before it.
    pub hash: String,
    /// When it was made.
    pub at: Timestamp,
    /// The full id of the execution; absent for a request that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// On whose behalf it happened.
    pub by: Owner,
    /// `event`, the event's name, and its fields; those named as a field of the entry are `event_by`
    /// and `event_detail`.
    #[serde(flatten, with = "entry_event")]
    pub event: Event,
    /// The command line, the isolation, the interface; with an end, what the execution used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<String, serde_json::Value>,
}

/// An event among the fields of its entry.
mod entry_event {
    use ostler_model::Event;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    /// Fields of events that an entry has of its own, and their names there.
    const RENAMED: [(&str, &str); 2] = [("by", "event_by"), ("detail", "event_detail")];

    pub(super) fn serialize<S: Serializer>(event: &Event, to: S) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(event).map_err(S::Error::custom)?;
        let Value::Object(mut fields) = value else {
            return Err(S::Error::custom("an event is no object"));
        };
        rename(&mut fields, RENAMED);
        fields.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Event, D::Error> {
        let mut fields = Map::deserialize(from)?;
        rename(&mut fields, RENAMED.map(|(own, among)| (among, own)));
        serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)
    }

    fn rename(fields: &mut Map<String, Value>, names: [(&str, &str); 2]) {
        for (from, to) in names {
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
    }
}

/// Entries that cannot be read, because their lines in the audit log were changed, removed or
/// damaged; `ostler audit verify` names the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedEntriesBody {
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
}

/// Entries that the caller sees: oldest first; with `before`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPageBody {
    /// The entries of this page; there may be none although there is more.
    pub entries: Vec<AuditEntryBody>,
    /// Entries, of any caller, that are left out because the log is damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedEntriesBody>,
    /// The `from`, or the `before`, to continue with. A position in the whole log, which numbers the entries of all callers: it
    /// tells that others made some, and has to, because what was read stays numbered when more comes,
    /// also under the next daemon.
    pub next: u64,
    /// Whether there is more already.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use ostler_model::{Principal, RequestChannel};
    use serde_json::json;

    use super::*;

    #[test]
    fn no_field_of_an_event_replaces_one_of_its_entry() {
        let owner = Owner {
            principal: Principal::unix(7),
            project: None,
            session: None,
            task: None,
            channel: RequestChannel::Local,
        };
        let events = [
            json!({"event": "health", "ok": false, "detail": "answered 500"}),
            json!({"event": "degraded", "ability": "journal", "detail": "no space"}),
            json!({"event": "lease_taken", "by": "uid:8"}),
            json!({"event": "restarting", "attempt": 2, "by": "uid:8", "reason": "asked for"}),
            json!({"event": "stopping", "order": {"kind": "session_ended"}}),
        ];
        for event in events {
            let entry = AuditEntryBody {
                seq: 3,
                hash: "00".to_owned(),
                at: Timestamp::UNIX_EPOCH,
                execution: None,
                by: owner.clone(),
                event: serde_json::from_value(event.clone()).expect("an event"),
                detail: BTreeMap::from([("interface".to_owned(), json!("rest"))]),
            };
            let text = serde_json::to_string(&entry).expect("JSON");
            for name in ["by", "detail", "event"] {
                let key = format!("\"{name}\":");
                assert_eq!(text.matches(&key).count(), 1, "{text}");
            }
            let value = json!(entry);
            assert_eq!(value["by"], json!(owner));
            assert_eq!(value["detail"], json!({"interface": "rest"}));
            assert_eq!(value.get("event_by"), event.get("by"));
            assert_eq!(value.get("event_detail"), event.get("detail"));
            let read: AuditEntryBody = serde_json::from_str(&text).expect("read again");
            assert_eq!(read, entry);
        }
    }
}
