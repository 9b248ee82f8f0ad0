//! The nouns of Ostler, and nothing else: what was asked ([`Spec`]), what happened ([`Event`]),
//! what that amounts to ([`State`]) and how it ended ([`Ending`]).
//!
//! Everything here is plain data and pure functions. This crate must never know of async
//! runtimes, files, sockets, JSON schema or MCP: those are edges, and edges translate into
//! these words.
//!
//! Read [`event`] first, then [`state`]: the second is a fold over the first.
#![forbid(unsafe_code)]

pub mod amount;
pub mod autorun;
pub mod changes;
pub mod code;
pub mod confinement;
pub mod cursor;
pub mod ending;
pub mod event;
pub mod evidence;
mod hex;
pub mod host;
pub mod id;
mod network;
pub mod owner;
pub mod policy;
pub mod ranges;
pub mod resolve;
pub mod service;
pub mod signal;
pub mod spec;
pub mod state;
pub mod status;
pub mod text;
pub mod visible;

pub use autorun::{Autorun, AutorunReport};
pub use changes::{
    Change, ChangeKind, Changes, Conflict, ConflictReason, Fate, FileKind, WorkspaceAnswer,
    WorkspaceOrder,
};
pub use code::ErrorCode;
pub use confinement::{
    Confinement, Forward, ForwardError, HostError, HostPattern, HostRule, Network,
};
pub use cursor::Cursor;
pub use ending::{Cause, Ending, LostReason, TimeoutKind};
pub use event::{Event, EventRecord, StopOrder};
pub use evidence::{Abilities, Ability, Evidence, LimitBackend, Observation, Usage};
pub use hex::lower_hex;
pub use id::{ExecutionId, IdError, InputId};
pub use owner::{Caller, Channel, Owner, Principal, Scope, SessionName};
pub use policy::{Degraded, IsolationLevel, Limit, Limits, Policy};
pub use ranges::Ranges;
pub use resolve::{Asked, Unmet, resolve};
pub use service::{
    Condition, Dependency, HealthRule, Holder, Port, ReadyRule, ReadyWhen, ServiceKind,
    ServicePlan, Sign, SignKind, Stage,
};
pub use signal::Signal;
pub use spec::{
    Command, Environment, Io, Leftovers, Lifetime, PlaceName, Restart, SCRIPT_BYTES, ShellKind,
    ShellSession, Spec, Stdin, StreamName, TermSize, UnknownShell, quoted,
};
pub use state::{Phase, State};
pub use text::Text;
pub use visible::{Colours, has_hidden, visible, visible_json, visible_lines, visible_output};

/// A moment in time, in nanoseconds since the Unix epoch; RFC 3339 in JSON.
pub use jiff::Timestamp;
