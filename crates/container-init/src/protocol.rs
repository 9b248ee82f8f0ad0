//! The messages between a shim and a runner: packets of `ostler_sys::packet` on a SEQPACKET socket,
//! each with at most one descriptor.
//!
//! The shim sends one [`TreeRequest::Launch`]. The runner answers with the ends of pipes or the
//! master of a terminal ([`TreeEvent::Output`], [`TreeEvent::Input`]) right before it starts the
//! command, then with [`TreeEvent::Started`], or [`TreeEvent::Failed`]: a connection that closes in
//! between is that of a command which may have run. From then on requests are the
//! operations of a process tree, and the runner reports the end of the leader and, last, that of the
//! tree ([`TreeEvent::Empty`]). It kills the tree when the connection closes.
//!
//! Instead of a launch, [`TreeRequest::Socket`] is answered with [`TreeEvent::Socket`] and ends the
//! connection: probes connect from inside the container's network, which only root could enter.

use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, ExecutionId, LimitKind, OrphanPolicy, StreamName, TermSize, Usage};
use ostler_sys::packet::{self, PacketError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the protocol. An init is not used by a daemon that was built with another one.
pub const PROTOCOL_VERSION: u8 = 1;
/// The directory in the container in which the init's socket is; on the host it is a directory of
/// the container's own.
pub const SOCKET_DIR: &str = "/run/ostler";
/// The name of the socket.
pub const SOCKET_NAME: &str = "init.sock";
/// The largest [`LaunchRequest`], in bytes: it travels in a memory file.
pub const LAUNCH_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The largest packet: only the launch carries more, in its file.
pub const MESSAGE_BYTES: usize = 4096;

/// What a shim asks of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeRequest {
    /// Spawn the command; the descriptor is a memory file with a [`LaunchRequest`].
    Launch,
    /// Send a signal to the leader's process group.
    Signal(i32),
    /// Send SIGTERM to every process.
    Terminate,
    /// Send what processes of a terminal are sent when it goes away.
    HangUp,
    /// Stop every process.
    StopAll,
    /// Continue every process.
    ContinueAll,
    /// Kill every process.
    Kill,
    /// Let the processes that the leader left continue the attempt.
    Detach,
    /// Instead of a launch: make a stream socket for TCP in the container's network.
    Socket {
        /// Whether it is one for IPv6.
        ipv6: bool,
    },
}

/// What a runner tells its shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeEvent {
    /// The connection is served; the descriptor is the runner's pidfd.
    Hello,
    /// The descriptor is what this stream is read from.
    Output(StreamName),
    /// The descriptor is what input is written to.
    Input,
    /// The command runs; the descriptor is its leader's pidfd.
    Started,
    /// The command does not run, and nothing is left of it.
    Failed {
        /// The step that failed, as in exit records.
        step: String,
        /// The kernel's error number.
        errno: i32,
        /// The problem, where step and number do not tell.
        message: Option<String>,
    },
    /// The leader has ended, and others are left.
    LeaderExited {
        /// How.
        status: WaitStatus,
        /// What the processes used that were reaped until then.
        usage: Usage,
    },
    /// No process of the tree is left. The last message.
    Empty(TreeEnd),
    /// The descriptor is the socket that was requested.
    Socket,
}

/// The end of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeEnd {
    /// The leader's status; none where it could not be had.
    pub status: Option<WaitStatus>,
    /// What its processes used.
    pub usage: Usage,
    /// How many processes outlived the leader and were signalled.
    pub left_behind: u32,
    /// The end of the last process kept after the leader that failed.
    pub failed_status: Option<WaitStatus>,
    /// How many processes of the container the kernel killed for its memory meanwhile.
    pub oom_kills: u64,
    /// The limits of the container that were reached meanwhile.
    pub limits_hit: Vec<LimitKind>,
}

/// The command of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// The execution.
    pub id: ExecutionId,
    /// The program, as execvp(3) searches for it.
    pub program: ByteString,
    /// The program to search for where that is not found; it replaces the zeroth argument, too.
    pub fallback: Option<ByteString>,
    /// The arguments, including the zeroth.
    pub argv: Vec<ByteString>,
    /// Variables that replace and extend the container's.
    pub env: Vec<(ByteString, ByteString)>,
    /// The directory it starts in.
    pub cwd: ByteString,
    /// How its standard streams are connected.
    pub stdio: LaunchStdio,
    /// What happens to processes that the leader leaves.
    pub orphan_policy: OrphanPolicy,
    /// Limits to lower: `(resource, limit)` of setrlimit(2).
    pub rlimits: Vec<(i32, u64)>,
    /// Secrets that become files, by name.
    pub secret_files: Vec<(ByteString, ByteString)>,
}

/// How standard streams are connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchStdio {
    /// Pipes; standard input is the null device.
    Null,
    /// Pipes; standard input is a file with these bytes.
    Bytes(ByteString),
    /// Pipes, standard input among them.
    Piped,
    /// A terminal of this size.
    Terminal(TermSize),
}

/// Encodes a message as one packet.
///
/// # Errors
/// When serde cannot serialize it.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, PacketError> {
    packet::encode(PROTOCOL_VERSION, message)
}

/// Decodes the message of a packet.
///
/// # Errors
/// When the packet has another version, or is no message of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PacketError> {
    packet::decode(PROTOCOL_VERSION, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire_and_fit_a_packet() {
        let events = [
            TreeEvent::Output(StreamName::Pty),
            TreeEvent::Failed {
                step: "exec".to_owned(),
                errno: 2,
                message: None,
            },
            TreeEvent::Empty(TreeEnd {
                limits_hit: vec![LimitKind::Memory, LimitKind::Pids],
                failed_status: Some(WaitStatus::Code(1)),
                ..TreeEnd::default()
            }),
        ];
        for event in events {
            let packet = encode(&event).expect("encoded");
            assert!(packet.len() < MESSAGE_BYTES);
            assert_eq!(decode::<TreeEvent>(&packet).expect("decoded"), event);
        }
        let launch = LaunchRequest {
            id: ExecutionId::mint(),
            program: "sh".into(),
            fallback: Some("ash".into()),
            argv: vec!["sh".into(), "-c".into(), ByteString::from(vec![0xff, b'a'])],
            env: vec![("A".into(), "b".into())],
            cwd: "/workspace".into(),
            stdio: LaunchStdio::Bytes(ByteString::from(vec![0, 1, 2])),
            orphan_policy: OrphanPolicy::Kill,
            rlimits: vec![(7, 64)],
            secret_files: vec![("TOKEN".into(), "value".into())],
        };
        let packet = encode(&launch).expect("encoded");
        assert_eq!(decode::<LaunchRequest>(&packet).expect("decoded"), launch);
    }
}
