//! What a backend is given to run.

use std::fmt;
use std::time::Duration;

use ostler_model::{
    ByteString, ContainerSpec, ExecutionId, Limits, OrphanPolicy, SandboxSpec, TermSize,
};
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use ostler_model::{ControlCommand, ProcessEvent};

/// The largest plan: arguments, environment, input and spec together, in bytes.
pub const PLAN_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// One attempt, resolved to what the kernel needs. A backend may send it to another process in a
/// format without field names (postcard): every field is present and their order is the format.
#[derive(Clone, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The execution.
    pub id: ExecutionId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The [`Spec`](ostler_model::Spec) as JSON, written verbatim before anything runs.
    #[serde(with = "as_bytes")]
    pub spec: Vec<u8>,
    /// The program's absolute path; in a container, what is to be searched for there, as execvp(3)
    /// does.
    pub program: ByteString,
    /// The argument vector, its zeroth element as the caller wrote it.
    pub argv: Vec<ByteString>,
    /// The whole environment; the backend adds `OSTLER_EXECUTION`. In a container, what replaces and
    /// extends the container's.
    pub env: Vec<(ByteString, ByteString)>,
    /// The absolute working directory, as the command sees it.
    pub cwd: ByteString,
    /// Standard input, or a terminal for all three.
    pub io: LaunchIo,
    /// Deadlines that the backend enforces even when no engine runs.
    pub timeouts: Timeouts,
    /// What happens to processes that the leader leaves.
    pub orphan_policy: OrphanPolicy,
    /// Limits to apply to the tree.
    #[serde(with = "every_limit")]
    pub limits: Limits,
    /// The isolation of level high.
    #[serde(with = "as_json")]
    pub sandbox: Option<SandboxSpec>,
    /// Secret values, which the journal never contains; each occurrence in output is replaced.
    pub redact: Vec<ByteString>,
    /// Files that must be unchanged, the program among them; otherwise nothing is spawned. Empty
    /// where nothing is to be compared.
    pub pinned_files: Vec<PinnedFile>,
    /// Whether [`ProcessEvent::Started`] is reported at once. Without it, only a program that does
    /// not end within milliseconds reports its start, which saves short commands a wake-up.
    pub report_start: bool,
    /// Whether a reader that must receive every byte is expected from the first byte on: with a
    /// full disk the command then waits until [`ControlCommand::Retain`] gives the position of that
    /// reader. Without it, a full disk stops no command.
    pub lossless_reader: bool,
    /// The lowest offset at which the output of a later attempt may begin: the highest offset that
    /// any reader was given. Output of an earlier attempt may have been in memory only.
    pub min_output_offset: u64,
    /// Whether what the command is given as input is recorded in the journal as
    /// [`StreamName::Stdin`](ostler_model::StreamName::Stdin): not while its terminal has echo off,
    /// and with secrets replaced.
    pub record_input: bool,
    /// The directory whose growth counts instead of that of the workspace alone. Not sent to another
    /// process.
    #[serde(skip)]
    pub disk_scope: Option<DiskScope>,
    /// The container to run it in. Not sent to another process.
    #[serde(skip)]
    pub container: Option<Box<ContainerLaunch>>,
    /// The running container that the attempt is spawned in; what resolves
    /// [`container`](Self::container) sets it. This and the fields after it are sent apart from the
    /// plan, where there is a container.
    #[serde(skip)]
    pub attachment: Option<ContainerAttachment>,
    /// The program to search for in the container where [`program`](Self::program) is not found
    /// there.
    #[serde(skip)]
    pub program_fallback: Option<ByteString>,
    /// Secrets that are files in the container, by name.
    #[serde(skip)]
    pub secret_files: Vec<(ByteString, ByteString)>,
}

/// The container that an attempt needs, and who shares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerLaunch {
    /// The container.
    pub spec: ContainerSpec,
    /// The user that it belongs to: [`Owner::principal`](ostler_model::Owner) as text.
    pub principal: String,
    /// The project that it belongs to.
    pub project: String,
}

/// How a running container is reached: by the socket on which its init accepts launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerAttachment {
    /// The container's id, as its engine names it.
    pub container: String,
    /// The path of the init's socket on this machine.
    pub socket: ByteString,
    /// The OS pid of the container's init on this machine, which the peer of the socket must have.
    pub init_pid: u32,
}

/// A directory that several executions share, and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskScope {
    /// The directory.
    pub directory: ByteString,
    /// The bytes that it had before the first of them.
    pub base_bytes: u64,
    /// How many bytes all of them together may add. The plan's own limit is no larger.
    pub limit_bytes: u64,
}

impl fmt::Debug for LaunchPlan {
    /// Leaves out environment, input and secrets: plans are logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchPlan")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// The identity of a regular file when its content was read: any write changes a timestamp, and a
/// replacement has another inode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// Its absolute path; symbolic links are followed.
    pub path: ByteString,
    /// The device number of its file system (`st_dev`).
    pub dev: u64,
    /// Its inode number (`st_ino`).
    pub ino: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last modified (`st_mtim`), in seconds and nanoseconds since the Unix
    /// epoch.
    pub modified: (i64, i64),
    /// When its content or inode last changed (`st_ctim`), in the same units.
    pub changed: (i64, i64),
}

/// How input reaches an attempt and output leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchIo {
    /// Pipes for standard output and error; standard input at end of file.
    Empty,
    /// Pipes; standard input delivers these bytes, then end of file.
    Bytes(#[serde(with = "as_bytes")] Vec<u8>),
    /// Pipes, standard input among them, which stays open until [`ControlCommand::CloseInput`].
    Piped,
    /// A terminal of this size for all three.
    Pty(TermSize),
}

/// Deadlines of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From the start of the program to the kill escalation.
    pub wall: Option<Duration>,
    /// From the last output to the kill escalation.
    pub idle: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

/// Bytes as one value rather than as a sequence of numbers.
mod as_bytes {
    use ostler_model::ByteString;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(ByteString::deserialize(from)?.into_bytes())
    }
}

/// A [`SandboxSpec`](ostler_model::SandboxSpec) as JSON text: its own form leaves out unset fields,
/// which a format without field names cannot read back.
mod as_json {
    use ostler_model::SandboxSpec;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        sandbox: &Option<SandboxSpec>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let json = sandbox.as_ref().map(serde_json::to_string).transpose();
        json.map_err(S::Error::custom)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SandboxSpec>, D::Error> {
        let json = Option::<String>::deserialize(from)?;
        let sandbox = json.as_deref().map(serde_json::from_str).transpose();
        sandbox.map_err(D::Error::custom)
    }
}

/// All [`Limits`](ostler_model::Limits) in one tuple, for the same reason.
mod every_limit {
    use ostler_model::Limits;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type EveryLimit = (
        Option<u32>,
        Option<u64>,
        Option<u32>,
        Option<u32>,
        Option<u64>,
        Option<u64>,
    );

    pub(super) fn serialize<S: Serializer>(limits: &Limits, to: S) -> Result<S::Ok, S::Error> {
        let Limits {
            pids,
            memory_bytes,
            cpu_millis,
            open_files,
            file_bytes,
            disk_bytes,
        } = *limits;
        let every: EveryLimit = (
            pids,
            memory_bytes,
            cpu_millis,
            open_files,
            file_bytes,
            disk_bytes,
        );
        every.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Limits, D::Error> {
        let (pids, memory_bytes, cpu_millis, open_files, file_bytes, disk_bytes) =
            EveryLimit::deserialize(from)?;
        Ok(Limits {
            pids,
            memory_bytes,
            cpu_millis,
            open_files,
            file_bytes,
            disk_bytes,
        })
    }
}
