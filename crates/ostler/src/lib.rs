//! Ostler as a library: run, supervise and record commands inside your own program.
//!
//! ```
//! use ostler::{Engine, StartRequest, ZygoteConfig};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let state_directory = directory.path();
//! let engine = Engine::open(state_directory, ZygoteConfig::InProcess).await?;
//! let me = engine.caller();
//! let waited = engine.run(&me, StartRequest::argv(["uname", "-a"], "/"), None).await?;
//! assert!(waited.info.state.ending.is_some_and(|ending| ending.is_success()));
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! With [`ZygoteConfig::Executable`] commands outlive your program: give the path of a program that
//! calls [`zygote_main`](process::zygote_main) first thing when its argument is `__keeper`
//! (the `ostler` binary does). With [`ZygoteConfig::InProcess`] they end with it. `examples/embed.rs`
//! walks through a background process.
//!
//! # Terminals
//!
//! A session is an execution with [`StartOptions::pty`]: everything above applies to it, under
//! the same id. Sizes are in character cells, offsets in bytes of raw output from the session's
//! start, times in milliseconds where a name says so.
//!
//! ```
//! use ostler::model::TermSize;
//! use ostler::terminal::InputPiece;
//! use ostler::{Engine, StartRequest, TerminalInput, TerminalPageQuery, WaitFor, ZygoteConfig};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let engine = Engine::open(directory.path(), ZygoteConfig::InProcess).await?;
//! # let me = engine.caller();
//! let mut request = StartRequest::argv(["sh", "-c", "read name; echo hello $name"], "/");
//! request.options.pty = Some(TermSize { cols: 80, rows: 24 });
//! let id = engine.start(&me, request).await?.id.to_string();
//!
//! let pieces = vec![InputPiece::Text("you".into()), InputPiece::Key("enter".parse()?)];
//! engine.send_input(&me, &id, TerminalInput { pieces, lease: None }).await?;
//! engine.wait(&me, &id, &WaitFor::Exit, None).await?;
//!
//! // Raw: every byte, escape sequences included, by offset.
//! let page = engine.read_terminal(&me, &id, TerminalPageQuery::default()).await?;
//! assert_eq!(page.data, b"you\r\nhello you\r\n");
//! // Rendered: the rows of the screen.
//! let screen = engine.screen(&me, &id).await?;
//! assert_eq!(screen.rows[..2], ["you", "hello you"]);
//!
//! engine.destroy(&me).await?;
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! `examples/terminal.rs` runs commands in a shell session and writes a file in vim;
//! `examples/attach.rs` connects a person's terminal to a session.
//!
//! # How to
//!
//! | to | use |
//! |---|---|
//! | **Engine** |  |
//! | open an engine | [`Engine::open`], or [`Engine::with`] for [`Settings`] |
//! | know what this machine supports | [`Engine::capabilities`] |
//! | close it | [`Engine::shutdown`] |
//! | end and remove everything first | [`Engine::destroy`] |
//! | **Commands** |  |
//! | run a command and wait for its end | [`Engine::run`]; the duration is [`ExecutionInfo::duration`] |
//! | start one in the background | [`Engine::start`] |
//! | set arguments, directory, environment, limits, labels | [`StartRequest`] and its [`StartOptions`]: `set_env` extends the environment, `base_env` replaces it |
//! | isolate it | [`StartOptions::sandbox`], a [`SandboxOptions`] |
//! | list, look one up | [`Engine::list`], [`Engine::info`]; the status is [`ExecutionInfo::status`] |
//! | wait for its end, a line, a prompt, readiness, silence | [`Engine::wait`] with a [`WaitFor`]; [`WaitEnd::TimedOut`] when the time is over; as an error, [`WaitOutcome::error_code`] |
//! | follow state changes | [`Engine::watch`] for one execution, [`Engine::subscribe`] for all |
//! | stop a process tree (SIGTERM, then SIGKILL) | [`Engine::stop`]; with [`StopRequest::force`] SIGKILL at once |
//! | send one signal and no more | [`Engine::signal`] |
//! | write to standard input, close it | [`Engine::write`], [`Engine::close_input`] |
//! | see what one uses, now and over time | [`Engine::tree_snapshot`], [`Engine::usage_history`] |
//! | learn once when one uses more than a threshold | [`Engine::subscribe_alerts`], an [`AlertNotice`] each; thresholds are [`StartOptions::alerts`] and [`Settings::alerts`] |
//! | remove what has ended | [`Engine::clean`], one [`CleanOutcome`] per id; without it [`RetentionDefaults`] and [`StartOptions::retention`] decide when |
//! | **Output** |  |
//! | read recorded lines, by stream, time, pattern or position | [`Engine::journal`], then [`Journal::lines`] with a [`LineQuery`](journal::LineQuery) |
//! | follow output as it comes | [`Engine::follow`] |
//! | export it | [`export::export()`]; a copy kept up to date: [`Settings::mirror`] |
//! | discard what is recorded so far | [`Engine::clear_output`] |
//! | **Terminals** |  |
//! | start a session | [`StartOptions::pty`]; a shell that reports status and directory: [`Engine::shell_request`] |
//! | type text, keys, pastes | [`Engine::send_input`] with [`InputPiece`](terminal::InputPiece)s |
//! | run one command in a shell session | [`Engine::run_in_shell`] |
//! | read raw output by offset | [`Engine::read_terminal`]; the view holds the last [`Settings::terminal_view_bytes`], the journal everything that is kept |
//! | read the screen | [`Engine::screen`]; as bytes for another terminal: [`Engine::repaint`] |
//! | change the size | [`Engine::resize`] |
//! | receive output and the end as events | [`Engine::terminal_events`]: [`TerminalEvent::Output`] and, once, [`TerminalEvent::Exit`] |
//! | keep other writers out | [`Engine::acquire_lease`] |
//! | **Contexts** |  |
//! | share a directory, variables, secrets and limits | [`Engine::open_context`] with a [`ContextRequest`], then [`StartRequest::context`] |
//! | list and end them | [`Engine::contexts`], [`Engine::remove_context`] |
//! | **Services** |  |
//! | start a named service, or reuse it | [`Engine::start_service`], [`Engine::ensure_service`] with a [`ServiceRequest`] |
//! | find out why one is not ready | [`Engine::diagnose_service`] |
//! | **Questions to a person** |  |
//! | detect that a command asks | [`Engine::wait`] with [`WaitFor::Prompt`], which returns a [`Prompt`]; text alone: [`prompt::detect`] |
//! | open a question | [`Engine::open_interaction`] with a [`Question`]; [`Question::from_prompt`] for the one a command asks |
//! | wait for the answer | [`Engine::wait_for_answer`]; a timeout and a cancellation are an [`InteractionOutcome`] |
//! | answer or cancel it | [`Engine::answer_interaction`] (validates the answer and types it in), [`Engine::cancel_interaction`] |
//! | list questions, follow them | [`Engine::interactions`], [`Engine::watch_interactions`] |
//! | **Errors** |  |
//! | report an error by a stable code | [`Error::code`]; the table is [`model::error_code`] |
#![forbid(unsafe_code)]

mod engine;

pub use engine::{DestroyError, Engine, EngineOpenError};
pub use ostler_backend as backend;
pub use ostler_backend::Backend;
pub use ostler_backend_local as process;
pub use ostler_backend_local::{LocalBackend, ZygoteConfig};
pub use ostler_engine::detection::DetectedService;
pub use ostler_engine::lease::LeaseId;
pub use ostler_engine::terminal::TERMINAL_VIEW_BYTES;
pub use ostler_engine::{
    AlertNotice, AllowedVolume, AutoServices, CleanOutcome, ClientKind, ContainerSettings,
    ContextInfo, ContextRequest, Diagnosis, EnsureResult, Error, EventFeedPage, EventFeedQuery,
    ExecutionInfo, ExecutionWatch, IdempotencyKey, Interaction, InteractionId, InteractionOutcome,
    IsolationSettings, Lease, LeaseHolder, LifecycleEvent, LineMatch, ListFilter, OutputFollower,
    PortRequest, Prompt, Question, QueueWait, QueuedStart, Quotas, RetentionDefaults,
    RetentionRequest, SandboxOptions, SecretSettings, SecretSource, SentInput, ServiceError,
    ServiceInfo, ServiceQuestion, ServiceRequest, ServiceReuse, ServiceSettings, ServiceStart,
    ServiceStopped, Settings, ShellCommand, ShellEnd, ShellRun, StartFailure, StartGuard,
    StartLimits, StartRequest, StdinRequest, StopRequest, TerminalEvent, TerminalEvents,
    TerminalInput, TerminalInputResult, TerminalPage, TerminalPageQuery, UpResult, UsageHistory,
    UsageHistoryQuery, UsageResolution, WaitEnd, WaitFor, WaitOutcome, interaction, prompt,
};
pub use ostler_export as export;
pub use ostler_journal as journal;
pub use ostler_journal::{AuditFinding, AuditReport, HeadKey, Journal, LedgerReader};
pub use ostler_model as model;
pub use ostler_model::{
    AlertKind, AlertState, AlertThresholds, ByteString, Caller, CapabilitySet, ContainerOptions,
    ContainerSpec, Cursor, EventRecord, ExecutionId, OverlayRequest, OverlayResponse, ShellKind,
    Signal, SnapshotRequest, StartOptions, TermSize, TreeSnapshot, UsageSample,
};
pub use ostler_terminal as terminal;
pub use ostler_terminal::{Checkpoint, ScreenSnapshot, ShellState};
