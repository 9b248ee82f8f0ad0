//! What a command of level high sees of the machine (D8): data, made by admission, carried out
//! by the sandbox.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;

/// Everything the command sees and reaches. What is not named here is not there.
///
/// System directories (`/usr`, `/bin`, `/lib*`, `/sbin`, `/etc`, `/opt`, `/nix`, …) are shown
/// read-only, `/tmp`, `/var/tmp`, `/dev/shm` and `/run` are private and empty, `/proc` and `/dev`
/// are fresh, the home directory is empty but for what `read` and `write` name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The writable directory, absolute and without symbolic links; none where the command
    /// works in a private directory such as `/tmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// Whether writes to the workspace go to an overlay, to be committed or discarded.
    #[serde(default)]
    pub overlay: bool,
    /// The home directory, empty inside but for what is named below; none hides nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<ByteString>,
    /// Further absolute paths shown read-only, where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Further absolute paths shown writable, where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Absolute paths hidden within what is shown: directories appear empty, files too. The
    /// state directory and the runtime directory of the engine are always among these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<ByteString>,
    /// A directory of the engine's own that is shown read-only although what is around it is
    /// hidden: the scripts by which a shell tells about its commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<ByteString>,
    /// Paths below the workspace that stay read-only, for example `.git/hooks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<ByteString>,
    /// What of the network it reaches.
    #[serde(default)]
    pub network: NetworkAccess,
    /// Ports of the host's loopback that lead to the command's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<PortForward>,
    /// Walls that are done without, because the request allowed it and the host lacks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<crate::snapshot::Capability>,
}

/// What of the network a command reaches; its own loopback always works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// Nothing.
    #[default]
    None,
    /// TCP to these hosts, by name or address; names are resolved outside.
    AllowList {
        /// The hosts.
        hosts: Vec<HostRule>,
    },
    /// The host's network, as if there were no wall.
    Full,
}

/// One host that may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRule {
    /// Which.
    pub host: HostPattern,
    /// To which TCP ports; empty means 80 and 443.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// Which hosts a rule means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostPattern {
    /// This name, in lower case, without a final dot.
    Name(String),
    /// Every name below this one, not itself (`*.example.org`).
    Below(String),
    /// Addresses of a network; a single address has the full prefix length. Only these reach
    /// private ranges.
    Addresses {
        /// The network's address.
        address: IpAddr,
        /// Bits of it that count.
        prefix: u8,
    },
}

/// One port of the host that leads inside: `8080:80`, or `8080` for the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortForward {
    /// The port of the host's `127.0.0.1`.
    pub host: u16,
    /// The port of the command's loopback.
    pub inside: u16,
}

/// A text that is no forwarded port.
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

/// Ports one command may have forwarded.
pub const FORWARDS_MAX: usize = 32;
/// Ports of a rule that names none.
pub const DEFAULT_PORTS: [u16; 2] = [80, 443];
/// Hosts one allow list may have.
pub const HOSTS_MAX: usize = 256;
/// Paths each list of a confinement may have.
pub const PATHS_MAX: usize = 256;

/// A text that is no host rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no host: {problem}")]
pub struct HostRuleError {
    /// As it was given.
    pub given: String,
    /// What is wrong with it.
    pub problem: &'static str,
}
