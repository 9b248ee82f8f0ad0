//! `ostler mcp`.

use clap::Args;
use ostler_model::Text;
use ostler_server::mcp::{self, Client, FrontContext};

use crate::config::TOOL_PROFILES;
use crate::daemon::{self, embedded::Embedded};
use crate::error::{CommandError, Outcome};
use crate::front::{self, Front};
use crate::setup::Setup;

/// The longest name of a session.
const SESSION_NAME_BYTES: usize = 128;

/// What `mcp` takes.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Share a session with others of this name, and keep it when this client leaves
    #[arg(long, value_name = "NAME", value_parser = session)]
    session: Option<String>,
    /// Which tools to offer: command
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(TOOL_PROFILES))]
    tools: Vec<String>,
    /// Run the engine in this process instead of the daemon
    #[arg(long)]
    no_daemon: bool,
}

fn session(name: &str) -> Result<String, String> {
    let fits = (1..=SESSION_NAME_BYTES).contains(&name.len());
    if !fits || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "allowed: 1 to {SESSION_NAME_BYTES} printable ASCII characters"
        ));
    }
    if daemon::is_front_session(name) {
        return Err("names that begin with 'front-' are taken by fronts without one".to_owned());
    }
    Ok(name.to_owned())
}

/// Serves one MCP client on standard input and output.
///
/// # Errors
/// When no engine can be reached or opened.
pub(crate) fn run(setup: &Setup, args: McpArgs) -> Outcome {
    let tools = if args.tools.is_empty() {
        setup.config.tools()
    } else {
        args.tools
    };
    setup.tell_warnings();
    if args.no_daemon {
        return alone(setup, args.session, &tools);
    }
    let front = Front {
        session: args.session,
        tools,
        policy: setup.config.front_policy(),
        places: setup.places.clone(),
        launch: setup.launch.clone(),
    };
    front::run(&front, &setup.env)
}

/// The engine in this process: ends with its client.
fn alone(setup: &Setup, session: Option<String>, tools: &[String]) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::daemon(format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let embedded = Embedded::open(&setup.config, &setup.env).await?;
        let served = serve(&embedded, setup, session, tools).await;
        embedded.close().await;
        served.map(|()| 0)
    });
    runtime.shutdown_background();
    outcome
}

async fn serve(
    embedded: &Embedded,
    setup: &Setup,
    session: Option<String>,
    tools: &[String],
) -> Result<(), CommandError> {
    let kept = session.is_some();
    let own =
        || daemon::front_session(std::process::id()).unwrap_or_else(|| "front-0-0".to_owned());
    let session = session.unwrap_or_else(own);
    let tools = daemon::tool_set(tools).map_err(|error| CommandError::value(error.to_string()))?;
    let cwd = std::env::current_dir().unwrap_or_default();
    let context = FrontContext {
        cwd: Text::from(cwd),
        env: setup.env.to_texts(),
        tools,
        ..FrontContext::default()
    };
    let client = Client {
        caller: daemon::session_caller(&session),
        front: context,
    };
    let (reader, writer) = daemon::streams::own().map_err(|error| {
        CommandError::daemon(format!("standard input and output cannot be used: {error}"))
    })?;
    let served = tokio::select! {
        served = mcp::serve(embedded.desk.clone(), client, reader, writer) => served,
        told = daemon::told_to_end() => told.map(Ok)?,
    };
    if !kept {
        daemon::end_session(&embedded.engine, &session).await;
    }
    served.map_err(|error| CommandError::daemon(error.to_string()))
}
