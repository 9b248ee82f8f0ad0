//! The data model of Ostler: the request ([`Spec`]), what happened ([`Event`]), the state folded
//! from that ([`State`]) and how it ended ([`Termination`]).
//!
//! Everything here is plain data and pure functions. This crate must never depend on async
//! runtimes, files, sockets, JSON schema or MCP: those belong to the outer crates, which convert
//! to and from these types.
//!
//! Read [`event`] first, then [`state`]: the second is a fold over the first.
#![forbid(unsafe_code)]

mod alert;
pub mod autorun;
mod backend_name;
pub mod byte_string;
mod capability;
mod command;
pub mod container;
mod context_id;
pub mod control;
pub mod cursor;
mod default_value;
pub mod duration;
pub mod error_code;
pub mod event;
pub mod exit_record;
mod file_kind;
mod hex;
pub mod host_pattern;
pub mod id;
pub mod interaction;
pub mod isolation;
pub mod isolation_resolve;
pub mod limits_hit;
mod line_number;
mod millis;
mod network_access;
pub mod overlay;
pub mod owner;
pub mod process_event;
mod project_set;
pub mod quantity;
pub mod question;
pub mod ranges;
pub mod request_record;
mod restart_policy;
pub mod sandbox_options;
pub mod sandbox_spec;
pub mod service;
pub mod signal;
pub mod snapshot;
pub mod spec;
pub mod start_options;
pub mod state;
pub mod status;
pub mod suggestion;
mod template_record;
mod term_size;
pub mod termination;
mod usage_peaks;
mod usage_sample;
pub mod visible;

pub use alert::{AlertKind, AlertState, AlertTextError, AlertThresholds};
pub use autorun::{AutorunFinding, AutorunReport};
pub use byte_string::ByteString;
pub use capability::{Capability, CapabilityError, CapabilitySet, LimitBackend, MissingCapability};
pub use container::{
    ContainerHealth, ContainerOptions, ContainerSpec, DiskEnforcement, VolumeMount,
};
pub use context_id::{ContextId, ContextIdError};
pub use control::{ControlCommand, IdempotentInput, InputProgress};
pub use cursor::Cursor;
pub use default_value::is_default;
pub use error_code::ErrorCode;
pub use event::{ContextStage, Event, EventRecord, REPLACED, RequestedAction, StopReason};
pub use exit_record::{ExitRecord, KillReason, LeaderOutcome};
pub use file_kind::FileKind;
pub use hex::lower_hex;
pub use id::{ExecutionId, IdError, InputId};
pub use interaction::{CancelReason, InteractionState};
pub use isolation::{IsolationLevel, IsolationSpec, LimitKind, Limits};
pub use isolation_resolve::{IsolationRequest, UnmetIsolation, resolve_isolation};
pub use line_number::line_number;
pub use overlay::{
    ChangeKind, ConflictReason, OverlayChange, OverlayChanges, OverlayConflict, OverlayOutcome,
    OverlayRequest, OverlayResponse,
};
pub use owner::{Caller, Owner, Principal, RequestChannel, Scope, SessionName};
pub use process_event::{ProcessEvent, TerminalQuery};
pub use project_set::{ProjectSet, ProjectView};
pub use question::{PromptEvidence, QuestionKind, QuestionSource};
pub use ranges::Ranges;
pub use request_record::{PortRequest, RequestRecord, ServiceRecord};
pub use sandbox_options::SandboxOptions;
pub use sandbox_spec::{
    HostPattern, HostRule, HostRuleError, NetworkAccess, PortForward, PortForwardError, SandboxSpec,
};
pub use service::{
    Dependency, DependencyCondition, HealthRule, PortHolder, ReadinessSignal, ReadyCondition,
    ReadyRule, ServiceKind, ServicePlan, ServicePort, ServiceStage, SignalKind,
};
pub use signal::Signal;
pub use snapshot::{SnapshotRequest, TreeSnapshot, Usage};
pub use spec::{
    BackendName, Command, Environment, Io, Lifetime, OrphanPolicy, RestartPolicy, SCRIPT_BYTES,
    ShellKind, ShellSession, Spec, StdinSource, StreamName, TermSize, UnknownShell, shell_quote,
};
pub use start_options::{RetentionRequest, StartOptions};
pub use state::{Phase, State};
pub use template_record::TemplateRecord;
pub use termination::{LostReason, Termination, TerminationCause, TimeoutKind};
pub use usage_peaks::UsagePeaks;
pub use usage_sample::UsageSample;
pub use visible::{ColourMode, has_hidden, visible, visible_json, visible_lines, visible_output};

/// A moment in time, in nanoseconds since the Unix epoch; RFC 3339 in JSON.
pub use jiff::Timestamp;
