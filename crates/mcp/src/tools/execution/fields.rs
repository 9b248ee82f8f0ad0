//! Fields that the answers of several tools have.

use ostler_api::NetworkBody;
use ostler_model::{Capability, IsolationLevel, Spec};
use ostler_render::isolation::describe_missing;
use ostler_render::truncated;
use serde::Serialize;

/// The most characters of a command or description in a list.
const SUMMARY_CHARS: usize = 200;

/// Isolation: requested, in force, missing.
#[derive(Debug, Serialize)]
pub(in crate::tools) struct CommandIsolation {
    #[serde(rename = "asked")]
    requested: IsolationLevel,
    in_force: Vec<Capability>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
}

/// The requested and the actual isolation.
pub(in crate::tools) fn isolation_body(spec: &Spec) -> CommandIsolation {
    let policy = &spec.policy;
    CommandIsolation {
        requested: policy.level,
        in_force: policy.in_force.clone(),
        missing: policy
            .missing
            .iter()
            .map(|it| describe_missing(std::slice::from_ref(it)))
            .collect(),
        network: policy
            .confinement
            .as_ref()
            .map(|it| NetworkBody(it.network.clone())),
        image: spec.container.as_ref().map(|it| it.image.clone()),
    }
}

/// The beginning of a command or a description, for a list.
pub(in crate::tools) fn summary_text(text: &str) -> String {
    truncated(text, SUMMARY_CHARS)
}
