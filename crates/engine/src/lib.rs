//! The engine: admission, supervision and visibility of executions.
//!
//! [`Engine`] is the API. Below it, one pure [`supervisor`] per execution decides and one driver
//! task acts; the registry holds all executions. The engine must never know of HTTP, MCP or how a
//! backend enforces what it promises: capabilities arrive as data.
#![forbid(unsafe_code)]

pub mod admission;
mod alert;
#[cfg(test)]
mod container_start_tests;
mod context;
mod damaged;
pub mod detection;
mod disk_space;
mod dismissal_file;
mod driver;
mod engine;
mod engine_inner;
pub mod error;
mod execution;
mod fd_shortage;
mod file_owner;
mod follow;
mod hooks;
pub mod info;
pub mod interaction;
mod interaction_id;
mod json_file;
mod keyed_mutex;
pub mod lease;
mod ledger_checkpoint;
mod lost_output;
mod mirror;
mod missing_ends;
pub mod monitor;
mod open_readers;
mod overlay;
pub mod probes;
mod project;
pub mod prompt;
mod prompt_watch;
#[cfg(test)]
mod race_tests;
mod random_hex;
mod recover;
mod refused_request;
mod registry;
pub mod request;
mod retention;
mod retention_scheduler;
pub mod search;
mod secret_bindings;
pub mod secret_texts;
pub mod service;
mod service_names;
mod session_end;
pub mod settings;
pub mod shell;
mod shell_script_dir;
mod start;
mod start_id;
#[cfg(test)]
mod start_id_tests;
mod stop;
mod summary;
pub mod terminal;
mod unfinished;
mod unwritten;
mod wait;
mod watch;

pub use self::alert::AlertNotice;
pub use self::context::{ContextInfo, ContextRequest};
pub use self::engine_inner::{LEDGER, LEDGER_HEADS, LOCK_FILE};
pub use engine::{Engine, EventFeedPage, EventFeedQuery, SCANNED_EVENTS};
pub use error::{ContextError, Error, ProjectError};
pub use fd_shortage::{is_out_of_fds, read_with_free_fds, wait_for_free_fds};
pub use file_owner::is_trusted_owner;
pub use follow::OutputFollower;
pub use info::{
    CleanOutcome, ExecutionInfo, LifecycleEvent, LineMatch, Prompt, QueueWait, QueuedStart,
    WaitEnd, WaitOutcome,
};
pub use interaction::{
    Interaction, InteractionBound, InteractionError, InteractionId, InteractionOutcome, Question,
};
pub use keyed_mutex::KeyedMutex;
pub use lease::{Lease, LeaseHolder, LeaseId};
pub use lost_output::{damaged_output, lost_bytes, lost_tail};
pub use monitor::{UsageHistory, UsageHistoryQuery, UsageListener, UsageResolution};
pub use ostler_lifecycle::{context::ContextState, readiness, supervisor};
pub use ostler_model::{PortRequest, RetentionRequest, SandboxOptions, StartOptions};
pub use project::{project_of, projects_contain};
pub use refused_request::RefusedRequest;
pub use request::{ClientKind, ListFilter, StartRequest, StdinRequest, StopRequest, WaitFor};
pub use search::{SentInput, plain_text};
pub use secret_bindings::{SecretBinding, SecretHolder, SecretHolders};
pub use service::{
    Diagnosis, EnsureResult, ServiceError, ServiceInfo, ServiceQuestion, ServiceRequest,
    ServiceReuse, ServiceStart, ServiceStopped, StartFailure, StartLimits, UpResult,
};
pub use settings::{
    AllowedVolume, ApprovalPath, AutoServices, ContainerSettings, ContextSettings,
    IsolationSettings, Quotas, RetentionDefaults, SecretSettings, SecretSource, ServiceSettings,
    Settings,
};
pub use shell::{IdempotencyKey, ShellCommand, ShellEnd, ShellRun};
pub use start::{QUEUE_WAIT_MS, StartGuard};
pub use terminal::{
    TerminalEvent, TerminalEvents, TerminalInput, TerminalInputResult, TerminalPage,
    TerminalPageQuery,
};
pub use watch::ExecutionWatch;
