//! `ostler mcp`.

use clap::Args;
use ostler_interface::project_access::ProjectAccess;
use ostler_mcp::{ClientContext, ConnectedClient};
use ostler_model::ByteString;

use crate::config::TOOL_PROFILES;
use crate::context::CliContext;
use crate::daemon::{self, in_process::InProcessEngine};
use crate::error::{CommandError, CommandResult};
use crate::stdio_proxy::{self, StdioProxy};

/// The longest session name in bytes.
const SESSION_NAME_BYTES: usize = 128;

/// What `mcp` takes.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Share a session with others of this name, and keep it when this client leaves
    #[arg(long, value_name = "NAME", value_parser = parse_session)]
    session: Option<String>,
    /// Which tools to offer, several with ',' between them; those of the setting mcp.tools unless given
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(TOOL_PROFILES))]
    tools: Vec<String>,
    /// Run the engine in this process instead of the daemon
    #[arg(long)]
    pub(crate) no_daemon: bool,
}

fn parse_session(name: &str) -> Result<String, String> {
    let fits = (1..=SESSION_NAME_BYTES).contains(&name.len());
    if !fits || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "allowed: 1 to {SESSION_NAME_BYTES} printable ASCII characters"
        ));
    }
    if daemon::is_stdio_session(name) {
        return Err("names that begin with 'front-' are taken by fronts without one".to_owned());
    }
    Ok(name.to_owned())
}

/// Serves one MCP client on standard input and output.
///
/// # Errors
/// When no engine can be reached or opened.
pub(crate) fn run(context: &CliContext, args: McpArgs) -> CommandResult {
    let tools = if args.tools.is_empty() {
        context.config.tools()
    } else {
        args.tools
    };
    context.report_warnings();
    if args.no_daemon {
        return run_in_process(context, args.session, &tools);
    }
    let proxy = StdioProxy {
        session: args.session,
        tools,
        policy: context.config.client_policy(),
        dirs: context.dirs.clone(),
        launcher: context.launch.clone(),
    };
    stdio_proxy::run(&proxy, &context.env)
}

/// Runs the engine in this process, until its client closes the connection.
fn run_in_process(
    context: &CliContext,
    session: Option<String>,
    tools: &[String],
) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::daemon(format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let embedded = InProcessEngine::open(&context.config, &context.env).await?;
        let result = serve(&embedded, context, session, tools).await;
        embedded.close().await;
        result.map(|()| 0)
    });
    runtime.shutdown_background();
    outcome
}

async fn serve(
    embedded: &InProcessEngine,
    context: &CliContext,
    session: Option<String>,
    tools: &[String],
) -> Result<(), CommandError> {
    let is_named = session.is_some();
    let unnamed =
        || daemon::stdio_session(std::process::id()).unwrap_or_else(|| "front-0-0".to_owned());
    let session = session.unwrap_or_else(unnamed);
    let tools = daemon::tool_set(tools).map_err(|error| CommandError::value(error.to_string()))?;
    let cwd = std::env::current_dir().unwrap_or_default();
    let context = ClientContext {
        cwd: ByteString::from(cwd),
        env: context.env.to_texts(),
        tools,
        ..ClientContext::default()
    };
    let client = ConnectedClient {
        caller: daemon::stdio_session_caller(&session),
        access: ProjectAccess::default(),
        context,
    };
    let (reader, writer) = daemon::streams::standard_streams().map_err(|error| {
        CommandError::daemon(format!("standard input and output cannot be used: {error}"))
    })?;
    let result = tokio::select! {
        served = ostler_mcp::serve(embedded.mcp_state.clone(), client, reader, writer) => served,
        signal = daemon::wait_for_shutdown_signal() => signal.map(Ok)?,
    };
    if !is_named {
        daemon::end_session(&embedded.engine, &session).await;
    }
    result.map_err(|error| CommandError::daemon(error.to_string()))
}
