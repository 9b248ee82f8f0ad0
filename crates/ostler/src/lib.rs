//! Ostler as a library: run, supervise and record commands inside your own program.
//!
//! ```no_run
//! use ostler::{Engine, Keeper, StartRequest};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open("/var/lib/mine", Keeper::None).await?;
//! let me = engine.caller();
//! let waited = engine.run(&me, StartRequest::argv(["uname", "-a"], "/"), None).await?;
//! assert!(waited.info.state.ending.is_some_and(|ending| ending.is_success()));
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! With [`Keeper::Executable`] commands outlive your program: give the path of a program that
//! calls [`keeper_main`](process::keeper_main) first thing when its argument is `__keeper`
//! (the `ostler` binary does). With [`Keeper::None`] they end with it. `examples/embed.rs`
//! walks through a background process.
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
//! | `ProcessInfo` | [`Info`]; `pid` is [`Info::id`], `status` is [`Info::status`], `error_message` is [`Info::error_message`] |
//! | `ProcessStatus` | [`model::status::ProcessStatus`] |
//! | `CommandResult` | [`Waited`]; `execution_time` is [`Info::duration`] |
//! | every `…Error` | [`Error::code`], one table for all faces: [`model::code`] |
//!
//! | document 001 | here |
//! |---|---|
//! | `InteractionManager.create_interaction` | [`Engine::ask`](ostler_engine::Engine::ask) with a [`Question`]; [`Question::of_prompt`] for a command's own |
//! | `InteractionManager.wait_for_response` | [`Engine::answered`](ostler_engine::Engine::answered); its time-out and cancellation are an [`Answer`] |
//! | `InteractionManager.submit_response` | [`Engine::answer`](ostler_engine::Engine::answer), which validates and types the answer in |
//! | `InteractionManager.cancel_interaction` | [`Engine::cancel_interaction`](ostler_engine::Engine::cancel_interaction) |
//! | `pending_interactions` | [`Engine::interactions`](ostler_engine::Engine::interactions) |
//! | `InteractionType`, `InteractionRequest` | [`interaction::Kind`], [`Interaction`] |
//! | `_is_confirmation_required`, `_extract_confirmation_message`, `_extract_confirmation_options` | [`Engine::wait`](ostler_engine::Engine::wait) with [`WaitFor::Prompt`], which tells a [`Prompt`]; the words alone: [`prompt::detect`] |
#![forbid(unsafe_code)]

mod engine;

pub use engine::{Engine, OpenError};
pub use ostler_engine::{
    Answer, Begun, CleanOutcome, Error, Face, Follower, Info, Interaction, InteractionId,
    ListFilter, Match, Notice, Prompt, Question, Quotas, RetentionDefaults, RetentionRequest,
    Settings, StartRequest, StdinRequest, StopRequest, WaitEnd, WaitFor, Waited, interaction,
    prompt,
};
pub use ostler_journal as journal;
pub use ostler_model as model;
pub use ostler_process as process;
pub use ostler_process::{Keeper, LocalPlace, Place};
