//! The sandbox of isolation level high: plain data, made by admission and carried out by the
//! sandbox crate.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::capability::Capability;

/// The part of the file system that a command can see and the part of the network that it can
/// reach. Paths and hosts that are not listed here do not exist for it.
///
/// System directories (`/usr`, `/bin`, `/lib*`, `/sbin`, `/etc`, `/opt`, `/nix`, …) are mounted
/// read-only, `/tmp`, `/var/tmp`, `/dev/shm` and `/run` are private and empty, `/proc` and `/dev`
/// are fresh mounts, the home directory is empty except for the paths in `read` and `write`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The writable directory, absolute and without symbolic links; none where the command works
    /// in a private directory such as `/tmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// Whether writes to the workspace go to an overlay, to be committed or discarded later.
    #[serde(default)]
    pub overlay: bool,
    /// The home directory, which appears empty except for what is named below; none hides no home
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<ByteString>,
    /// Further absolute paths to mount read-only, where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Further absolute paths to mount writable, where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Absolute paths to hide: directories and files appear empty. The state directory and the
    /// runtime directory of the engine are always among these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<ByteString>,
    /// A directory of the engine that is mounted read-only although its parent is hidden: the
    /// scripts by which a shell marks the beginning and the end of its commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<ByteString>,
    /// Paths below the workspace that stay read-only, for example `.git/hooks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<ByteString>,
    /// The network access.
    #[serde(default)]
    pub network: NetworkAccess,
    /// Ports of the host's loopback interface that are forwarded to the command's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<PortForward>,
    /// Restrictions that are left out, because the request allowed it and the host lacks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Capability>,
}

impl SandboxSpec {
    /// Whether the command has a network of its own, with a loopback interface that is not the
    /// host's.
    #[must_use]
    pub fn has_own_network(&self) -> bool {
        let is_left_out = self.without.contains(&Capability::NetworkNamespace);
        self.network != NetworkAccess::Full && !is_left_out
    }
}

/// The network access of a command; its own loopback interface always works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// No network.
    #[default]
    None,
    /// TCP to these hosts, by name or address; names are resolved outside the sandbox.
    AllowList {
        /// The allow list.
        hosts: Vec<HostRule>,
    },
    /// The host's network, without restriction.
    Full,
}

/// One host that may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRule {
    /// The host or hosts.
    pub host: HostPattern,
    /// The TCP ports; empty means 80 and 443.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// The hosts that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostPattern {
    /// This name, in lower case, without a final dot.
    Name(String),
    /// Every name below this one, not itself (`*.example.org`).
    Below(String),
    /// The addresses of a network; a single address has the full prefix length. Only rules of this
    /// kind allow private ranges.
    Addresses {
        /// The network address.
        address: IpAddr,
        /// The prefix length in bits.
        prefix: u8,
    },
}

/// One port forwarded from the host into the sandbox: `8080:80`, or `8080` for the same on both
/// sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortForward {
    /// The port on the host's `127.0.0.1`.
    pub host: u16,
    /// The port on the command's loopback interface.
    pub inside: u16,
}

/// The error for a text that is not a port forward.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no port to forward: a number from 1 to 65535, or HOST:INSIDE")]
pub struct PortForwardError(String);

impl std::str::FromStr for PortForward {
    type Err = PortForwardError;

    fn from_str(text: &str) -> Result<Self, PortForwardError> {
        let (host, inside) = text.split_once(':').unwrap_or((text, text));
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0_u16);
        let ports = port(host).zip(port(inside));
        let forward = ports.map(|(host, inside)| Self { host, inside });
        forward.ok_or_else(|| PortForwardError(text.to_owned()))
    }
}

impl std::fmt::Display for PortForward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.inside)
    }
}

/// The most port forwards of one command.
pub const FORWARDS_MAX: usize = 32;
/// The ports of a host rule that names none.
pub const DEFAULT_PORTS: [u16; 2] = [80, 443];
/// The most hosts of one allow list.
pub const HOSTS_MAX: usize = 256;
/// The most paths in each list of a sandbox.
pub const PATHS_MAX: usize = 256;

/// The error for a text that is not a host rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no host: {problem}")]
pub struct HostRuleError {
    /// The text as given.
    pub given: String,
    /// The problem with it.
    pub problem: &'static str,
}
