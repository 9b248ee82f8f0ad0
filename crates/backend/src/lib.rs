//! The trait [`Backend`] of execution backends, its plan, handle, events, commands and errors, and
//! the files that a backend, the engine and a later daemon share.
//!
//! Holds no backend. Must never know how processes are started: no fork, no namespaces, no sandbox,
//! no cgroups, no wire protocol between a daemon and its helper processes; nor of owners, services
//! or HTTP. The engine depends on this crate and knows nothing below it; `ostler-backend-local`
//! implements the trait with processes of this machine, a container or cluster backend would do so
//! with others.
//!
//! # The contract
//!
//! A backend runs **attempts**. An execution (one [`ExecutionId`](ostler_model::ExecutionId)) has one
//! attempt, or several one after the other; the engine decides on each and never starts a second one
//! while the first lives.
//!
//! Everything that has to outlive the daemon is in the **execution directory**,
//! `<state>/executions/<id>`, which the backend makes. No two processes write one file:
//!
//! | file | written by | when | by means of |
//! |---|---|---|---|
//! | `spec.json` | backend | whole, before anything of the attempt runs | [`attempt_dir::create`] |
//! | output segments and index | backend | as output arrives, in order | [`output_sink::OutputSink`] |
//! | `exit` ([`ExitRecord`]) | backend | whole or not at all, after the last output and before [`ProcessEvent::Exited`] | [`execution_dir::write_exit_record`] |
//! | `container.json` | backend | once the command runs in a container | [`container_file::ContainerFile`] |
//! | `events.jsonl` | engine | at any time; the backend may create it, empty | |
//! | any other name | the component that documents it | | |
//!
//! The engine and its clients read output from these files and never through the backend. A backend
//! whose output comes from elsewhere (a container runtime's log, a network stream) copies it into an
//! [`output_sink::OutputSink`], after [`redact::Redactor`] has taken the values of
//! [`LaunchPlan::redact`] out of it: what must not be stored must not reach a file first.
//!
//! ## The contract of each method
//!
//! * [`Backend::capabilities`] is the result of probing when the backend was opened, with a reason
//!   for each missing one. The engine refuses a start that needs more; a backend never weakens a
//!   plan silently.
//! * [`Backend::spawn`] returns as soon as the attempt is under way, and an error only where nothing
//!   was started and nothing is left behind. From then on every outcome is an event.
//! * **Events**: [`ProcessEvent::Started`] at most once; then any others; at last exactly one of
//!   [`ProcessEvent::Exited`] and [`ProcessEvent::Lost`], after which the channel closes. `Exited`
//!   means that the exit record is on disk or, where the disk refused, that the event is the only
//!   copy ([`ExitRecord::journal_error`] is set). A program that could not be started is `Exited`
//!   with [`LeaderOutcome::SpawnFailed`]. [`ProcessEvent::Output`] comes only while watched
//!   ([`ControlCommand::Watch`]), after the bytes are readable, and may be coalesced.
//! * [`ProcessControl::send`] means the command was delivered within [`COMMAND_TIMEOUT_MS`]; its
//!   effect is an event. Commands for an attempt that is over are dropped
//!   ([`ControlError::Ended`]).
//! * **Deadlines** ([`Timeouts`]), limits, the orphan policy and the kill escalation are the
//!   backend's, and are enforced while no daemon runs: the engine only requests a stop. The attempt
//!   is over when no process of the tree is left, or those that survive SIGKILL are listed in the
//!   record.
//! * [`Backend::recover`] answers for executions of an earlier daemon: still running (with a new
//!   handle; [`ProcessEvent::Frozen`], limits that were reached and [`ProcessEvent::Detached`] are
//!   reported again), ended as recorded, or lost with a reason. Members of a lost tree are ended before
//!   it returns. [`RecoveryOutcome::Unreachable`] changes nothing and may be asked again.
//! * [`Backend::snapshot`] and [`Backend::usage`] inspect and change nothing. `usage` serves all
//!   executions that are sampled at one time: its cost grows with their processes, never with their
//!   number times the processes of the host. `usage`, [`Backend::connect`], [`Backend::overlay`], [`Backend::port_holders`] and [`Backend::probe_filesystems`] have
//!   defaults that report that the backend does not support them.
//! * [`Backend::close`] ends what serves this daemon only; running executions continue where
//!   [`Capability::Durable`](ostler_model::Capability::Durable) is present.
//!
//! ## What a second implementation has to do
//!
//! 1. Give each attempt a supervisor that does not die with the daemon, or lack `Durable`. It is named
//!    in `spec.json` by a [`spec_file::ShimIdentity`]: boot id, pid and start time.
//! 2. Before anything runs: [`attempt_dir::create`], which also tells two daemons apart that were
//!    sent the same start (`EXIST`).
//! 3. While it runs: append output through the sink, read what became of the way to the disk from
//!    [`output_sink::OutputSink::take_events`] and report it ([`ProcessEvent::JournalFailed`],
//!    [`ProcessEvent::JournalRecovered`]), and stop reading from the command where
//!    [`output_sink::OutputSink::must_pause_reads`] says so. [`execution_dir::reserve`] room for the
//!    record.
//! 4. At the end: drain the output, [`execution_dir::write_exit_record`],
//!    [`output_sink::OutputSink::mark_end_recorded`], and only then [`ProcessEvent::Exited`].
//! 5. In [`Backend::recover`]: [`stored_files::read_spec_header`], then
//!    [`stored_files::read_exit_record`]. A record of the newest attempt or a later one is the end;
//!    another boot id is [`LostReason::Reboot`](ostler_model::LostReason::Reboot); otherwise the
//!    supervisor is contacted, and read again before it is given up: it may have ended meanwhile.
#![forbid(unsafe_code)]

pub mod attempt_dir;
mod backend;
pub mod container_file;
pub mod execution_dir;
mod launch_plan;
pub mod output_sink;
pub mod prepared_dir;
pub mod redact;
pub mod secret_form;
pub mod spec_file;
pub mod stored_files;
mod usage_reading;

pub use backend::{
    Backend, BoxFuture, COMMAND_TIMEOUT_MS, ContainerError, ControlCommand, ControlError,
    EXIT_RECORD_VERSION, ExitRecord, INPUT_CHUNK_BYTES, KillReason, LeaderOutcome,
    OverlayRequestError, ProcessControl, ProcessEvent, ReceivedEvent, RecoveryOutcome,
    STEP_OPEN_FILES, STEP_STORAGE, STEP_TERMINAL, SnapshotError, SpawnError, SpawnHandle,
    TerminalQuery,
};
pub use launch_plan::{
    ContainerAttachment, ContainerLaunch, DiskScope, LaunchIo, LaunchPlan, PLAN_MAX_BYTES,
    PinnedFile, Timeouts,
};
pub use ostler_model::control::{IdempotentInput, InputProgress};
pub use usage_reading::UsageReading;
