//! Messages between daemon, zygote and shims: one packet each, a version byte followed by one
//! postcard value. `docs/design/002-shim-protocol.md` describes layout and order.

use ostler_backend::{ContainerAttachment, ControlCommand, LaunchPlan};
use ostler_model::{ByteString, CapabilitySet, ExecutionId};
use ostler_sys::packet::{self, PacketError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first byte of every packet. Both sides are the same executable except across an
/// upgrade, where a shim of the old one meets a daemon of the new one.
pub(crate) const PROTOCOL_VERSION: u8 = 4;
/// Plans up to this size travel in the packet itself.
pub(crate) const INLINE_PLAN_BYTES: usize = 64 * 1024;

/// From the daemon to a shim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ShimRequest {
    /// Run this plan.
    Start(Box<LaunchPlan>),
    /// Run the plan in the memory file (memfd_create(2)) that comes with this packet.
    StartInMemory,
    /// A command for this attempt; one for another attempt came too late and is dropped.
    Command {
        id: ExecutionId,
        attempt: u32,
        command: ControlCommand,
    },
    /// Run this plan in a container.
    StartInContainer(Box<LaunchPlan>, Box<ContainerStart>),
}

/// What a plan for a container has besides others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContainerStart {
    attachment: ContainerAttachment,
    program_fallback: Option<ByteString>,
    secret_files: Vec<(ByteString, ByteString)>,
}

impl ShimRequest {
    /// The request to run a plan.
    pub(crate) fn start(mut plan: LaunchPlan) -> Self {
        match plan.attachment.take() {
            None => Self::Start(Box::new(plan)),
            Some(attachment) => {
                let start = ContainerStart {
                    attachment,
                    program_fallback: plan.program_fallback.take(),
                    secret_files: std::mem::take(&mut plan.secret_files),
                };
                Self::StartInContainer(Box::new(plan), Box::new(start))
            }
        }
    }

    /// The plan to run, if this is such a request.
    pub(crate) fn into_plan(self) -> Option<Box<LaunchPlan>> {
        match self {
            Self::Start(plan) => Some(plan),
            Self::StartInContainer(mut plan, start) => {
                plan.attachment = Some(start.attachment);
                plan.program_fallback = start.program_fallback;
                plan.secret_files = start.secret_files;
                Some(plan)
            }
            Self::StartInMemory | Self::Command { .. } => None,
        }
    }
}

// What a shim sends to the daemon is a `ProcessEvent`.

/// From the daemon to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteRequest {
    /// Fork this many shims.
    Fork { count: u32 },
    /// Fork this many shims that force their records to the disk.
    ForkDurable { count: u32 },
}

/// From the zygote to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteEvent {
    /// The first message: what can be enforced here.
    Hello { capabilities: CapabilitySet },
    /// A new shim; the daemon's end of its socket comes with this packet.
    Shim { pid: u32 },
    /// The kernel refused a fork.
    ForkFailed { errno: i32 },
    /// A shim ended; `swept` counts the processes it left, which were killed.
    ShimGone { pid: u32, swept: u32 },
}

/// Encodes a message as one packet.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, PacketError> {
    packet::encode(PROTOCOL_VERSION, message)
}

/// Decodes the message of a packet.
pub(crate) fn decode<T: DeserializeOwned>(packet: &[u8]) -> Result<T, PacketError> {
    packet::decode(PROTOCOL_VERSION, packet)
}

#[cfg(test)]
#[path = "proto_tests.rs"]
mod tests;
