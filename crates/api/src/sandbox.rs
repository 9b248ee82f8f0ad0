//! Isolation: what is in force.

use ostler_model::isolation::{LimitKind, Limits};
use ostler_model::sandbox_options::{network_words, port_words};
use ostler_model::{
    AutorunReport, ByteString, Capability, ContainerSpec, IsolationLevel, LimitBackend,
    MissingCapability, NetworkAccess, OverlayOutcome, PortForward,
};
use serde::{Deserialize, Serialize};

/// The network access: `"none"`, `"full"`, or a list of hosts as `["example.org",
/// "*.example.net", "10.0.0.5:22"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetworkBody(#[serde(with = "network_words")] pub NetworkAccess);

/// The requested isolation, what is in force and what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationBody {
    /// The requested level.
    #[serde(rename = "asked")]
    pub requested: IsolationLevel,
    /// The level in force.
    pub in_force: Vec<Capability>,
    /// The requested parts that are not available here, each with its reason.
    pub missing: Vec<MissingCapability>,
    /// Missing capabilities that are reported to people unasked: those that no command gets on this
    /// host are reported once per daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<MissingCapability>,
    /// How limits are enforced.
    pub backend: LimitBackend,
    /// The limits of its tree.
    pub limits: Limits,
    /// Limits that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<LimitKind>,
    /// What was in force and was lost while the newest attempt ran, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<MissingCapability>,
    /// Files it created or changed in its workspace that tools run or follow automatically.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// What it can see and reach at level high; absent at lower levels, where that is the same as for
    /// its user, and in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<SandboxInfoBody>,
    /// The container that it runs in; absent at other levels than container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerSpec>>,
}

/// What a command of level high sees and reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfoBody {
    /// The writable directory; absent where it works in a private one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// The state of its overlay; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<OverlayOutcome>,
    /// Its network access.
    pub network: NetworkBody,
    /// Further paths mounted read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Further paths mounted writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Paths below the workspace that stay read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<ByteString>,
    /// Ports of the host's loopback that are forwarded to the command.
    #[serde(default, with = "port_words", skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<PortForward>,
}
