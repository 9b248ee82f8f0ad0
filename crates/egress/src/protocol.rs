//! Messages between a shim, its gate and the gate's ear: one packet each.

use ostler_model::sandbox_spec::{HostPattern, HostRule};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first byte of every packet. All three processes run the same executable, so that another
/// version is a mistake and not an upgrade.
const PROTOCOL_VERSION: u8 = 4;

/// A message as one packet: the version, then one postcard value.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_extend(message, vec![PROTOCOL_VERSION])
}

/// The message in a packet; another version is an error as well.
pub(crate) fn decode<T: DeserializeOwned>(packet: &[u8]) -> Result<T, postcard::Error> {
    match packet.split_first() {
        Some((&PROTOCOL_VERSION, rest)) => postcard::from_bytes(rest),
        Some(_) | None => Err(postcard::Error::DeserializeBadEncoding),
    }
}

/// A rule as it travels; [`HostRule`] itself leaves fields out, which postcard cannot read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireRule {
    host: HostPattern,
    ports: Vec<u16>,
}

impl From<&HostRule> for WireRule {
    fn from(rule: &HostRule) -> Self {
        Self {
            host: rule.host.clone(),
            ports: rule.ports.clone(),
        }
    }
}

impl From<WireRule> for HostRule {
    fn from(rule: WireRule) -> Self {
        Self {
            host: rule.host,
            ports: rule.ports,
        }
    }
}

/// Shim to gate.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EgressRequest {
    /// First of all, with the log's descriptor where there is a log.
    Setup {
        /// What may be reached.
        rules: Vec<WireRule>,
        /// Whether two of [`EgressRequest::Namespace`] follow.
        namespaces: bool,
    },
    /// A namespace of the cell to be entered comes with this packet: first the user's, then
    /// the network's.
    Namespace,
    /// A connection to a port inside.
    Connect {
        /// Comes back with the answer.
        serial: u32,
        /// The port on the cell's loopback.
        port: u16,
    },
    /// A port of the host's loopback that leads to one inside.
    Forward {
        /// Comes back with the answer.
        serial: u32,
        /// The host's port; 0 lets the kernel choose.
        host_port: u16,
        /// The port on the cell's loopback.
        inside_port: u16,
    },
    /// No longer; connections that are there stay.
    Unforward {
        /// The host's port.
        host_port: u16,
    },
    /// What happened so far.
    Count {
        /// Comes back with the answer.
        serial: u32,
    },
}

/// Gate to shim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EgressEvent {
    /// Everything inside is in place.
    Ready,
    /// It could not be put in place.
    Failed {
        /// Which step.
        step: EgressStep,
        /// Why.
        errno: i32,
    },
    /// The connection comes with this packet.
    Connected {
        /// Of the question.
        serial: u32,
    },
    /// The host's port is open.
    Forwarding {
        /// Of the question.
        serial: u32,
        /// Which port it is.
        host_port: u16,
    },
    /// Nobody listens inside, or the host's port cannot be had.
    Refused {
        /// Of the question.
        serial: u32,
        /// Why.
        errno: i32,
    },
    /// What happened so far.
    Counts {
        /// Of the question.
        serial: u32,
        /// The numbers.
        counts: EgressCounts,
    },
}

/// What a gate has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressCounts {
    /// Questions for names that were answered with an address.
    pub names_allowed: u64,
    /// Questions for names that no rule allows, or that could not be understood.
    pub names_refused: u64,
    /// Connections carried outside.
    pub connections: u64,
    /// Connections that no rule allows, or whose name means no public address.
    pub refused: u64,
    /// Connections that were allowed and could not be made.
    pub failed: u64,
    /// Bytes carried out of the cell.
    pub bytes_out: u64,
    /// Bytes carried into the cell.
    pub bytes_in: u64,
}

/// A step of putting a gate in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EgressStep {
    /// Making the ear: socketpair(2), fork(2).
    Helper,
    /// setns(2) into the cell's user and network namespaces.
    Enter,
    /// unshare(2) of the antechamber's network namespace.
    Unshare,
    /// Making the pair of virtual interfaces (the kernel's `veth`).
    Interfaces,
    /// Addresses and routes.
    Routes,
    /// Listening in the antechamber.
    Listen,
    /// Handing sockets over, the runtime.
    Serve,
}

impl EgressStep {
    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Helper => "gate ear",
            Self::Enter => "gate setns",
            Self::Unshare => "gate unshare",
            Self::Interfaces => "gate veth",
            Self::Routes => "gate routes",
            Self::Listen => "gate listen",
            Self::Serve => "gate runtime",
        }
    }
}
