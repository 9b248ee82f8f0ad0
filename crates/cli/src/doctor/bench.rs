//! An engine of its own on a scratch directory: the recipe is the daemon's, whole.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::{Engine, Info, StartRequest};
use ostler_journal::ByteQuery;
use ostler_model::{
    Abilities, Ability, Caller, Confinement, Cursor, ErrorCode, IsolationLevel, StreamName, Text,
};
use ostler_process::{Keeper, LocalPlace, Place as _};

use super::report::Report;
use super::witness::{Goals, WITNESS_ARGUMENT, Witnessed};
use super::{checks, levels};
use crate::daemon;
use crate::error::CommandError;
use crate::paths::{home, make_scratch};
use crate::setup::Setup;

/// How long the attempts may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Examines this machine as this user.
///
/// # Errors
/// When no scratch directory can be made, or no engine opened on it.
pub(crate) async fn examine(setup: &Setup) -> Result<Report, CommandError> {
    let scratch = make_scratch(&setup.env, "ostler-doctor-")?;
    let report = examined(setup, &scratch).await;
    if let Err(error) = fs::remove_dir_all(&scratch) {
        crate::tell(&format!("{} stays: {error}", scratch.display()));
    }
    report
}

async fn examined(setup: &Setup, scratch: &Path) -> Result<Report, CommandError> {
    let workspace = scratch.join("workspace");
    fs::create_dir_all(workspace.join(".git/hooks")).map_err(|error| {
        let message = format!("no scratch directory {}: {error}", scratch.display());
        CommandError::new(ErrorCode::Storage, message)
    })?;
    let config = setup.config.clone().with_state_dir(&scratch.join("state"));
    let mut settings = config.engine_settings(setup.env.to_texts());
    settings.isolation.minimum = IsolationLevel::Basic;
    let keeper = Keeper::Executable(daemon::executable());
    let place = LocalPlace::open(&settings.state_dir, keeper).await;
    let place = Arc::new(place.map_err(|it| CommandError::daemon(it.to_string()))?);
    let engine = Engine::open(
        settings,
        Arc::clone(&place) as Arc<dyn ostler_process::Place>,
    );
    let engine = engine.await.map_err(|error| CommandError::from(&error))?;
    // Where somebody works, that file system is what counts; nobody works in the root.
    let here = std::env::current_dir().ok();
    let here = here.filter(|path| path.parent().is_some());
    let here = here.unwrap_or_else(|| workspace.clone());
    let ground = Confinement {
        workspace: Some(Text::from(here)),
        overlay: true,
        ..Confinement::default()
    };
    let abilities = place.abilities();
    let abilities = abilities.lacking(place.survey(&ground).await);
    let levels = levels::all(&abilities);
    let witnessed = witness(setup, &engine, &workspace).await;
    engine.shutdown().await;
    let (witnessed, problem) = match witnessed {
        Ok(witnessed) => (witnessed, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    Ok(Report {
        uid: rustix::process::geteuid().as_raw(),
        levels,
        witnessed,
        problem,
        checks: checks::all(setup, &abilities).await,
    })
}

/// Runs the witness at level high, without what is missing; what it saw, or why it saw
/// nothing.
async fn witness(
    setup: &Setup,
    engine: &Engine,
    workspace: &Path,
) -> Result<Vec<Witnessed>, String> {
    let tcp = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let unix = format!("ostler-doctor-{}", std::process::id());
    let name = UnixAddress::from_abstract_name(unix.as_bytes()).map_err(|it| it.to_string())?;
    let _listens = UnixListener::bind_addr(&name).map_err(|error| error.to_string())?;
    let state = engine.settings().state_dir.join("doctor");
    let beside = workspace.with_file_name("beside");
    fs::write(&state, "witness").map_err(|error| error.to_string())?;
    let goals = Goals {
        pid: std::process::id(),
        tcp: tcp.local_addr().map_err(|error| error.to_string())?,
        unix,
        state,
        beside: beside.clone(),
        home: home(&setup.env),
        daemon: setup.places.daemon_socket(),
        inotify_instances: super::witness::instances().unwrap_or(u64::MAX),
        workspace: workspace.to_owned(),
    };
    let mut seen = ask(engine, &goals).await?;
    // Its /tmp is its own: what counts is whether the host's was written.
    for told in seen
        .iter_mut()
        .filter(|it| it.what == "write beside the workspace")
    {
        told.held = !beside.exists();
        if told.held && told.said == "it worked" {
            "only in a private directory".clone_into(&mut told.said);
        }
    }
    Ok(seen)
}

async fn ask(engine: &Engine, goals: &Goals) -> Result<Vec<Witnessed>, String> {
    let program: PathBuf = fs::canonicalize(daemon::executable()).map_err(|it| it.to_string())?;
    let goals_text = serde_json::to_string(goals).map_err(|error| error.to_string())?;
    let words = [
        Text::from(program.clone()),
        Text::from(WITNESS_ARGUMENT),
        Text::from(goals_text),
    ];
    let mut request = StartRequest::argv(words, goals.workspace.clone());
    request.level = Some(IsolationLevel::High);
    request.confine.read.push(Text::from(program));
    request.confine.allow_degraded = lacking(engine.abilities());
    request.confine.network = Some(ostler_model::Network::None);
    request.timeout = Some(PATIENCE);
    let caller = daemon::session_caller("doctor");
    let waited = engine.run(&caller, request, None).await;
    let info = waited.map_err(|error| error.to_string())?.info;
    seen(engine, &caller, &info)
}

/// What is missing is told in the table; the rest is to be witnessed nevertheless.
fn lacking(abilities: &Abilities) -> Vec<Ability> {
    abilities.missing.iter().map(|it| it.ability).collect()
}

fn seen(engine: &Engine, caller: &Caller, info: &Info) -> Result<Vec<Witnessed>, String> {
    let journal = engine.journal(caller, &info.id.short());
    let journal = journal.map_err(|error| error.to_string())?;
    let page = journal
        .read(&ByteQuery::from(Cursor::START))
        .map_err(|error| error.to_string())?;
    let told = |stream| {
        let chunks = page
            .chunks
            .iter()
            .filter(move |chunk| chunk.stream == stream);
        chunks
            .flat_map(|chunk| chunk.bytes.iter().copied())
            .collect::<Vec<u8>>()
    };
    let ending = info.state.ending.as_ref();
    serde_json::from_slice(&told(StreamName::Stdout)).map_err(|_| {
        let ending = ending.map_or_else(String::new, |it| it.describe());
        let errors = told(StreamName::Stderr);
        format!("{ending}: {}", String::from_utf8_lossy(&errors).trim())
    })
}
