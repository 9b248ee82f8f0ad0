//! Ostler as a library: run, supervise and record commands inside your own program.
//!
//! ```
//! use ostler::{Engine, Keeper, StartRequest};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let state_directory = directory.path();
//! let engine = Engine::open(state_directory, Keeper::None).await?;
//! let me = engine.caller();
//! let waited = engine.run(&me, StartRequest::argv(["uname", "-a"], "/"), None).await?;
//! assert!(waited.info.state.ending.is_some_and(|ending| ending.is_success()));
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! With [`ZygoteConfig::Executable`] commands outlive your program: give the path of a program that
//! calls [`zygote_main`](process::zygote_main) first thing when its argument is `__keeper`
//! (the `ostler` binary does). With [`ZygoteConfig::None`] they end with it. `examples/embed.rs`
//! walks through a background process.
//!
//! # Terminals
//!
//! A session is an execution with [`StartRequest::pty`]: everything above holds for it, and its
//! id names it everywhere. Sizes are in character cells, offsets in bytes of raw output from
//! the session's start, times in milliseconds where a name says so.
//!
//! ```
//! use ostler::model::TermSize;
//! use ostler::terminal::Piece;
//! use ostler::{Engine, Keeper, StartRequest, TerminalQuery, Typing, WaitFor};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let engine = Engine::open(directory.path(), Keeper::None).await?;
//! # let me = engine.caller();
//! let mut request = StartRequest::argv(["sh", "-c", "read name; echo hello $name"], "/");
//! request.pty = Some(TermSize { cols: 80, rows: 24 });
//! let id = engine.start(&me, request).await?.id.to_string();
//!
//! let pieces = vec![Piece::Text("you".into()), Piece::Key("enter".parse()?)];
//! engine.type_in(&me, &id, Typing { pieces, lease: None }).await?;
//! engine.wait(&me, &id, &WaitFor::Exit, None).await?;
//!
//! // Raw: every byte, escape sequences included, by offset.
//! let page = engine.read_terminal(&me, &id, TerminalQuery::default()).await?;
//! assert_eq!(page.data, b"you\r\nhello you\r\n");
//! // Rendered: what a person sees.
//! let screen = engine.screen(&me, &id).await?;
//! assert_eq!(screen.rows[..2], ["you", "hello you"]);
//!
//! engine.destroy(&me).await?;
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! `examples/terminal.rs` runs commands in a shell session and writes a file in vim;
//! `examples/attach.rs` puts a person at a session.
//!
//! # Where the documents' methods are
//!
//! | document 000 | here |
//! |---|---|
//! | `IOutputManager.initialize`, `IProcessManager.initialize`, `ICommandExecutor.initialize` | [`Engine::open`] |
//! | `IOutputManager.store_output` | the engine stores what commands print; there is no other way in |
//! | `IOutputManager.get_output(id, key, since, until, tail)`, `IProcess.get_output`, `ICommandExecutor.get_process_logs` | [`Engine::journal`](ostler_engine::Engine::journal) and [`Journal::lines`](journal::Journal::lines) with a [`LineQuery`](journal::LineQuery) |
//! | `IOutputManager.clear_output` | [`Engine::clear_output`](ostler_engine::Engine::clear_output) |
//! | `IOutputManager.shutdown`, `IProcessManager.shutdown`, `ICommandExecutor.shutdown` | [`Engine::shutdown`](ostler_engine::Engine::shutdown) |
//! | `IOutputLogger.add_message`, `add_messages`, `close` | [`journal::Mirror`], [`Settings::mirror`] |
//! | `IOutputLogger.get_logs` | [`Journal::lines`](journal::Journal::lines), [`journal::export()`] |
//! | `IProcess.get_details`, `IProcessManager.get_process_info`, `ICommandExecutor.get_process_detail` | [`Engine::info`](ostler_engine::Engine::info) |
//! | `IProcess.wait_for_completion(timeout)` | [`Engine::wait`](ostler_engine::Engine::wait) with [`WaitFor::Exit`]; [`WaitEnd::AtMost`] is its `ProcessTimeoutError` |
//! | `IProcess.stop`, `IProcessManager.stop_process`, `ICommandExecutor.stop_process` | [`Engine::stop`](ostler_engine::Engine::stop) |
//! | `IProcess.clean`, `IProcessManager.clean_processes`, `ICommandExecutor.clean_process` | [`Engine::clean`](ostler_engine::Engine::clean) |
//! | `IProcessManager.start_process`, `ICommandExecutor.start_background_command` | [`Engine::start`](ostler_engine::Engine::start) |
//! | `IProcessManager.list_processes`, `ICommandExecutor.list_process` | [`Engine::list`](ostler_engine::Engine::list) |
//! | `ICommandExecutor.execute_command` | [`Engine::run`](ostler_engine::Engine::run), then [`Engine::journal`](ostler_engine::Engine::journal) for stdout and stderr |
//! | `ICommandExecutor.get_process_manager` | the same [`Engine`]: there is one model, not several managers |
//! | `ProcessInfo` | [`ExecutionInfo`]; `pid` is [`ExecutionInfo::id`], `status` is [`ExecutionInfo::status`], `error_message` is [`ExecutionInfo::error_message`] |
//! | `ProcessStatus` | [`model::status::ProcessStatus`] |
//! | `CommandResult` | [`WaitOutcome`]; `execution_time` is [`ExecutionInfo::duration`] |
//! | every `…Error` | [`Error::code`], one table for all faces: [`model::code`] |
//!
//! | document 001 | here |
//! |---|---|
//! | `InteractionManager.create_interaction` | [`Engine::ask`](ostler_engine::Engine::ask) with a [`Question`]; [`Question::of_prompt`] for a command's own |
//! | `InteractionManager.wait_for_response` | [`Engine::answered`](ostler_engine::Engine::answered); its time-out and cancellation are an [`InteractionOutcome`] |
//! | `InteractionManager.submit_response` | [`Engine::answer`](ostler_engine::Engine::answer), which validates and types the answer in |
//! | `InteractionManager.cancel_interaction` | [`Engine::cancel_interaction`](ostler_engine::Engine::cancel_interaction) |
//! | `pending_interactions` | [`Engine::interactions`](ostler_engine::Engine::interactions) |
//! | `InteractionType`, `InteractionRequest` | [`interaction::Kind`], [`Interaction`] |
//! | `_is_confirmation_required`, `_extract_confirmation_message`, `_extract_confirmation_options` | [`Engine::wait`](ostler_engine::Engine::wait) with [`WaitFor::Prompt`], which tells a [`Prompt`]; the words alone: [`prompt::detect`] |
//!
//! | document 002 | here |
//! |---|---|
//! | `new PTYManager(options)` | [`Engine::open`], [`Engine::with`]; its buffer limit is [`Settings::terminal_view_bytes`] (1 MiB), its TTL [`RetentionDefaults::pty`] (300 s) for requests with [`ClientKind::Pty`], or [`StartRequest::retention`] |
//! | `spawn(command, { args, cwd, env, cols, rows })` | [`Engine::start`](ostler_engine::Engine::start) with [`StartRequest::pty`]; `env` that extends is [`StartRequest::set_env`], one that replaces [`StartRequest::base_env`]; the id is [`ExecutionInfo::id`] |
//! | `getOutput(id)` | [`Engine::read_terminal`](ostler_engine::Engine::read_terminal) with the default [`TerminalPageQuery`]; all that is kept, beyond the view: [`Engine::journal`](ostler_engine::Engine::journal) |
//! | `readOutput(id, { offset, limit })`, `process log` | [`Engine::read_terminal`](ostler_engine::Engine::read_terminal); `nextOffset`, `startOffset`, `truncated` are fields of [`TerminalPage`] |
//! | `write(id, data)` | [`Engine::type_in`](ostler_engine::Engine::type_in): text, keys, pastes, bytes as [`Piece`](terminal::Piece)s; bytes alone: [`Engine::write`](ostler_engine::Engine::write) |
//! | `getStatus(id)` | [`Engine::info`](ostler_engine::Engine::info): `status` is [`ExecutionInfo::status`]`().session`; `pid`, `startTime`, `endTime` are fields of [`ExecutionInfo::state`]; `exitCode` and the signal are in its `ending`; `outputLength` is [`ExecutionInfo::output_end`] |
//! | `kill(id, signal)` | [`Engine::stop`](ostler_engine::Engine::stop): SIGTERM (and a terminal's SIGHUP) to the whole tree, then SIGKILL; with [`StopRequest::force`] at once; one signal and no more: [`Engine::signal`](ostler_engine::Engine::signal) |
//! | `listSessions()` | [`Engine::list`](ostler_engine::Engine::list); sessions are those with an [`ExecutionInfo::size`] |
//! | `cleanup(id)` | [`Engine::clean`](ostler_engine::Engine::clean), one [`CleanOutcome`] per id; after its TTL a session is cleaned by itself |
//! | `resize(id, cols, rows)` | [`Engine::resize`](ostler_engine::Engine::resize) |
//! | `on('output')`, `on('exit')` | [`Engine::terminal_events`](ostler_engine::Engine::terminal_events): [`TerminalEvent::Output`] and, once, [`TerminalEvent::Exit`]; of every session at once: [`Engine::subscribe`](ostler_engine::Engine::subscribe) |
//! | `destroy()` | [`Engine::destroy`]: ends and removes everything the caller sees, durable or not; then [`Engine::shutdown`](ostler_engine::Engine::shutdown), which alone leaves durable sessions running. One session of a face: [`Engine::end_session`](ostler_engine::Engine::end_session) |
//! | `SessionNotFoundError`, `code=SESSION_NOT_FOUND` | [`Error::SessionNotFound`]; its [`Error::code`] is `session_not_found` |
//! | not in the document | [`Engine::screen`](ostler_engine::Engine::screen), [`Engine::repaint`](ostler_engine::Engine::repaint), [`Engine::take_lease`](ostler_engine::Engine::take_lease), [`Engine::shell_request`](ostler_engine::Engine::shell_request), [`Engine::run_in_shell`](ostler_engine::Engine::run_in_shell), [`Engine::wait`](ostler_engine::Engine::wait) with [`WaitFor::Prompt`] |
#![forbid(unsafe_code)]

mod engine;

pub use engine::{DestroyError, Engine, EngineOpenError};
pub use ostler_backend as backend;
pub use ostler_backend::Backend;
pub use ostler_backend_local as process;
pub use ostler_backend_local::{LocalBackend, ZygoteConfig};
pub use ostler_engine::terminal::{LeaseId, TERMINAL_VIEW_BYTES};
pub use ostler_engine::{
    CleanOutcome, ClientKind, Error, ExecutionInfo, ExecutionWatch, IdempotencyKey, Interaction,
    InteractionId, InteractionOutcome, Lease, LeaseHolder, LifecycleEvent, LineMatch, ListFilter,
    OutputFollower, Prompt, Question, Quotas, RetentionDefaults, RetentionRequest, Settings,
    ShellCommand, ShellEnd, ShellRun, StartGuard, StartRequest, StdinRequest, StopRequest,
    TerminalEvent, TerminalEvents, TerminalInput, TerminalInputResult, TerminalPage,
    TerminalPageQuery, WaitEnd, WaitFor, WaitOutcome, interaction, prompt,
};
pub use ostler_journal as journal;
pub use ostler_model as model;
pub use ostler_terminal as terminal;
