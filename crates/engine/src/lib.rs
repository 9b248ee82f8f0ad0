//! Decisions: what may run, what happens next, who may see it.
//!
//! [`Engine`] is the facade. Below it, one pure [`supervisor`] per execution decides and one
//! driver task acts; the registry knows them all. The engine must never know of HTTP, MCP or
//! how a place enforces what it promises: abilities arrive as data.
#![forbid(unsafe_code)]

pub mod admission;
mod begin;
mod confine;
mod core;
mod damaged;
pub mod detection;
mod driver;
pub mod effects;
mod engine;
mod entry;
pub mod error;
mod feed;
mod follow;
pub mod info;
pub mod interaction;
mod json_file;
mod keyed_mutex;
mod lookup;
mod loss;
mod observe;
mod project;
pub mod prompt;
mod quota_queue;
#[cfg(test)]
mod race_tests;
pub mod readiness;
mod recover;
mod registry;
pub mod request;
mod retention;
pub mod search;
pub mod service;
mod session;
pub mod settings;
pub mod shell;
mod short;
mod space;
mod start_id;
#[cfg(test)]
mod start_id_tests;
mod stop;
mod summary;
pub mod supervisor;
pub mod terminal;
mod unwritten;
mod watch;

pub use self::core::LOCK_FILE;
pub use admission::bindings::{Binding, Holder, Holders};
pub use begin::Begun;
pub use engine::Engine;
pub use error::Error;
pub use feed::{Feed, FeedQuery, SCANNED_EVENTS};
pub use follow::Follower;
pub use info::{CleanOutcome, Info, Match, Notice, Prompt, WaitEnd, Waited};
pub use interaction::{Answer, Interaction, InteractionError, InteractionId, Question};
pub use loss::{lost_bytes, lost_tail};
pub use ostler_process::{open_files, register_descriptor};
pub use project::project_of;
pub use quota_queue::{PLACE_WAIT_MS, QueueWait, QueuedStart};
pub use request::{
    Confine, Face, ListFilter, RetentionRequest, StartRequest, StdinRequest, StopRequest, WaitFor,
};
pub use search::SentInput;
pub use service::{
    Ensured, PortWish, ServiceError, ServiceInfo, ServiceRequest, ServiceStopped, Why,
};
pub use settings::{
    Automatic, IsolationSettings, Quotas, RetentionDefaults, SecretSource, Secrets,
    ServiceSettings, Settings,
};
pub use shell::{Once, ShellCommand, ShellEnd, ShellRun};
pub use short::{is_none_left, read_in_turn, room_to_read};
pub use terminal::{
    Lease, LeaseHolder, LeaseId, TerminalEvent, TerminalEvents, TerminalPage, TerminalQuery, Typed,
    Typing,
};
pub use watch::Watch;
