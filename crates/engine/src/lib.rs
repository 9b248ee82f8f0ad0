//! The engine: admission, supervision and visibility of executions.
//!
//! [`Engine`] is the facade. Below it, one pure [`supervisor`] per execution decides and one
//! driver task acts; the registry holds all executions. The engine must never know of HTTP, MCP or
//! how a backend enforces what it promises: capabilities arrive as data.
#![forbid(unsafe_code)]

pub mod admission;
mod control;
mod damaged;
pub mod detection;
mod disk_space;
mod dismissal_file;
mod driver;
mod engine;
mod engine_inner;
pub mod error;
mod event_feed;
mod execution;
mod fd_shortage;
mod follow;
pub mod info;
pub mod interaction;
mod json_file;
mod keyed_mutex;
mod lost_output;
pub mod probes;
mod program_lookup;
mod project;
pub mod prompt;
mod quota_queue;
#[cfg(test)]
mod race_tests;
mod recover;
mod registry;
pub mod request;
mod retention;
pub mod search;
pub mod service;
mod service_names;
mod session_end;
pub mod settings;
pub mod shell;
mod shell_run_slot;
mod shell_script_dir;
mod snapshot;
mod start;
mod start_id;
#[cfg(test)]
mod start_id_tests;
mod stop;
mod summary;
pub mod terminal;
mod unwritten;
mod watch;

pub use self::engine_inner::LOCK_FILE;
pub use admission::secret_bindings::{SecretBinding, SecretHolder, SecretHolders};
pub use engine::Engine;
pub use error::Error;
pub use event_feed::{EventFeedPage, EventFeedQuery, SCANNED_EVENTS};
pub use fd_shortage::{is_out_of_fds, read_with_free_fds, wait_for_free_fds};
pub use follow::OutputFollower;
pub use info::{
    CleanOutcome, ExecutionInfo, LifecycleEvent, LineMatch, Prompt, WaitEnd, WaitOutcome,
};
pub use interaction::{Interaction, InteractionError, InteractionId, InteractionOutcome, Question};
pub use lost_output::{lost_bytes, lost_tail};
pub use ostler_backend_local::{open_files, register_descriptor};
pub use ostler_lifecycle::{readiness, supervisor};
pub use project::project_of;
pub use quota_queue::{QUEUE_WAIT_MS, QueueWait, QueuedStart};
pub use request::{
    ClientKind, ListFilter, RetentionRequest, SandboxOptions, StartRequest, StdinRequest,
    StopRequest, WaitFor,
};
pub use search::SentInput;
pub use service::{
    Diagnosis, EnsureResult, PortRequest, ServiceError, ServiceInfo, ServiceRequest, ServiceStopped,
};
pub use settings::{
    AutoServices, IsolationSettings, Quotas, RetentionDefaults, SecretSettings, SecretSource,
    ServiceSettings, Settings,
};
pub use shell::{IdempotencyKey, ShellCommand, ShellEnd, ShellRun};
pub use start::StartGuard;
pub use terminal::{
    Lease, LeaseHolder, LeaseId, TerminalEvent, TerminalEvents, TerminalInput, TerminalInputResult,
    TerminalPage, TerminalPageQuery,
};
pub use watch::ExecutionWatch;
