//! Messages between a shim, its egress proxy and the proxy's namespace helper: one packet each.

use ostler_model::sandbox_spec::{HostPattern, HostRule};
use ostler_sys::packet::{self, PacketError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first byte of every packet. All three processes run the same executable, so that another
/// version is a mistake and not an upgrade.
const PROTOCOL_VERSION: u8 = 4;

/// Encodes a message as one packet.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, PacketError> {
    packet::encode(PROTOCOL_VERSION, message)
}

/// Decodes the message of a packet.
pub(crate) fn decode<T: DeserializeOwned>(packet: &[u8]) -> Result<T, PacketError> {
    packet::decode(PROTOCOL_VERSION, packet)
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

/// From the shim to the proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EgressRequest {
    /// First of all, with the log's descriptor where there is a log.
    Setup {
        /// The allow list.
        rules: Vec<WireRule>,
        /// Whether two [`EgressRequest::Namespace`] follow.
        namespaces: bool,
    },
    /// A namespace of the jail comes with this packet: first the user namespace, then the network
    /// namespace.
    Namespace,
    /// Connect to a port inside.
    Connect {
        /// Repeated in the response.
        serial: u32,
        /// The port on the jail's loopback.
        port: u16,
    },
    /// Forward a port of the host's loopback to one inside.
    Forward {
        /// Repeated in the response.
        serial: u32,
        /// The host's port; 0 lets the kernel choose.
        host_port: u16,
        /// The port on the jail's loopback.
        inside_port: u16,
    },
    /// Stop forwarding; existing connections stay.
    Unforward {
        /// The host's port.
        host_port: u16,
    },
    /// Report the counters.
    Count {
        /// Repeated in the response.
        serial: u32,
    },
}

/// From the proxy to the shim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EgressEvent {
    /// Everything inside is in place.
    Ready,
    /// The set-up failed.
    Failed {
        /// The step that failed.
        step: EgressStep,
        /// The error number.
        errno: i32,
    },
    /// The connection comes with this packet.
    Connected {
        /// The serial of the request.
        serial: u32,
    },
    /// The host's port is open.
    Forwarding {
        /// The serial of the request.
        serial: u32,
        /// The port of the host.
        host_port: u16,
    },
    /// Nothing listens inside, or the host's port cannot be bound.
    Refused {
        /// The serial of the request.
        serial: u32,
        /// The error number.
        errno: i32,
    },
    /// The counters so far.
    Counts {
        /// The serial of the request.
        serial: u32,
        /// The counters.
        counts: EgressCounts,
    },
}

/// Counters of an egress proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressCounts {
    /// Name queries that were answered with an address.
    pub names_allowed: u64,
    /// Name queries that no rule allows, or that could not be parsed.
    pub names_refused: u64,
    /// Outbound connections that were made.
    pub connections: u64,
    /// Connections that no rule allows, or whose name has no public address.
    pub refused: u64,
    /// Connections that were allowed and could not be made.
    pub failed: u64,
    /// Bytes sent out of the jail.
    pub bytes_out: u64,
    /// Bytes sent into the jail.
    pub bytes_in: u64,
}

/// A step of setting up an egress proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EgressStep {
    /// Starting the namespace helper: socketpair(2), fork(2).
    Helper,
    /// setns(2) into the jail's user and network namespaces.
    Enter,
    /// unshare(2) of the proxy's network namespace.
    Unshare,
    /// Making the pair of virtual interfaces (the kernel's `veth`).
    Interfaces,
    /// Addresses and routes.
    Routes,
    /// Listening in the proxy's network namespace.
    Listen,
    /// Handing over the sockets and starting the runtime.
    Serve,
}

impl EgressStep {
    /// Its name in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Helper => "gate helper",
            Self::Enter => "gate setns",
            Self::Unshare => "gate unshare",
            Self::Interfaces => "gate veth",
            Self::Routes => "gate routes",
            Self::Listen => "gate listen",
            Self::Serve => "gate runtime",
        }
    }
}
