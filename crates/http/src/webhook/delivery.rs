//! One delivery: the body and the headers that are posted.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use ostler_engine::AlertNotice;
use ostler_model::{AlertKind, AlertState, ExecutionId, lower_hex};
use serde::Serialize;
use sha2::Sha256;
use uuid::Uuid;

use super::settings::WebhookSecret;

/// An alert, ready to be posted as often as it takes.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Its id, the same with each attempt.
    pub(super) id: Uuid,
    pub(super) body: Vec<u8>,
}

/// The body: JSON.
#[derive(Debug, Serialize)]
struct DeliveryBody<'a> {
    /// The id of the delivery.
    delivery: Uuid,
    #[serde(rename = "type")]
    kind: &'static str,
    state: AlertState,
    at: Timestamp,
    /// The full id of the execution.
    task_id: ExecutionId,
    /// Its short id.
    execution: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    /// The command line, redacted.
    command: &'a str,
    resource: AlertKind,
    /// In percent of a core, bytes, or milliseconds.
    current: u64,
    /// In the same unit.
    limit: u64,
}

impl Delivery {
    pub(super) fn of(notice: &AlertNotice) -> Self {
        let id = Uuid::now_v7();
        let body = DeliveryBody {
            delivery: id,
            kind: match notice.kind {
                AlertKind::Cpu | AlertKind::Memory | AlertKind::Disk => "resource_limit_exceeded",
                AlertKind::RunTime => "execution_timeout",
                AlertKind::Idle => "execution_idle",
            },
            state: notice.state,
            at: notice.at,
            task_id: notice.execution,
            execution: notice.execution.short(),
            project: notice.owner.project.as_deref(),
            command: &notice.command,
            resource: notice.kind,
            current: notice.value,
            limit: notice.threshold,
        };
        Self {
            id,
            // Texts and numbers are always JSON.
            body: serde_json::to_vec(&body).unwrap_or_default(),
        }
    }

    /// The header `Ostler-Signature` of an attempt: HMAC-SHA256 over the seconds since the Unix
    /// epoch, a dot and the body, so that an old request cannot be sent again.
    pub(super) fn signature(&self, secret: &WebhookSecret, now: Timestamp) -> String {
        let seconds = now.as_second().to_string();
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&secret.0) else {
            // HMAC takes keys of every length.
            return String::new();
        };
        for part in [seconds.as_bytes(), b".", &self.body] {
            mac.update(part);
        }
        let digest = lower_hex(&mac.finalize().into_bytes());
        format!("t={seconds},v1={digest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_over_the_time_and_the_body() {
        let delivery = Delivery {
            id: Uuid::nil(),
            body: b"{}".to_vec(),
        };
        let secret = WebhookSecret::new(b"0123456789abcdef").unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let digest = "e4f8e2ecae2295b2ddb2f0b5584c8275e226c0ebe9b3b819e70156bb67122e3e";
        assert_eq!(
            delivery.signature(&secret, at(1_700_000_000)),
            format!("t=1700000000,v1={digest}")
        );
        assert!(
            !delivery
                .signature(&secret, at(1_700_000_001))
                .contains(digest)
        );
    }
}
