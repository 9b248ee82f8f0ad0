//! A test engine on a temporary directory, with the daemon's whole isolation.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::ZygoteConfig;
use ostler_engine::{Engine, ExecutionInfo, StartRequest};
use ostler_journal::ByteQuery;
use ostler_model::{
    ByteString, Caller, Capability, CapabilitySet, Cursor, ErrorCode, IsolationLevel, SandboxSpec,
    StreamName,
};

use super::containers::ContainerReport;
use super::report::DoctorReport;
use super::sandbox_probe::{PROBE_ARGUMENT, ProbeResult, ProbeTargets};
use super::{checks, level_reports};
use crate::containers;
use crate::context::CliContext;
use crate::daemon;
use crate::error::CommandError;
use crate::paths::{home, make_scratch};

/// The timeout of the attempts.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Examines this machine as the present user.
///
/// # Errors
/// When no temporary directory can be created, or no engine opened on it.
pub(crate) async fn examine(context: &CliContext) -> Result<DoctorReport, CommandError> {
    let scratch = make_scratch(&context.env, "ostler-doctor-")?;
    let report = build_report(context, &scratch).await;
    if let Err(error) = fs::remove_dir_all(&scratch) {
        crate::print_note(&format!("{} stays: {error}", scratch.display()));
    }
    report
}

async fn build_report(context: &CliContext, scratch: &Path) -> Result<DoctorReport, CommandError> {
    let workspace = scratch.join("workspace");
    fs::create_dir_all(workspace.join(".git/hooks")).map_err(|error| {
        let message = format!("no scratch directory {}: {error}", scratch.display());
        CommandError::new(ErrorCode::Storage, message)
    })?;
    let config = context
        .config
        .clone()
        .with_state_dir(&scratch.join("state"));
    let mut settings = config.engine_settings(context.env.to_texts());
    settings.isolation.minimum = IsolationLevel::Basic;
    let zygote = ZygoteConfig::Executable(daemon::executable());
    let backend = containers::open_backend(&settings, &context.env, zygote).await?;
    let engine = Engine::open(settings, Arc::clone(&backend));
    let engine = engine.await.map_err(|error| CommandError::from(&error))?;
    // The file system of the working directory is what counts, unless that is the root.
    let cwd = std::env::current_dir().ok();
    let cwd = cwd.filter(|path| path.parent().is_some());
    let cwd = cwd.unwrap_or_else(|| workspace.clone());
    let sandbox = SandboxSpec {
        workspace: Some(ByteString::from(cwd)),
        overlay: true,
        ..SandboxSpec::default()
    };
    let capabilities = backend.capabilities();
    let capabilities = capabilities.without(backend.probe_filesystems(&sandbox).await);
    let mut levels = level_reports::host_levels(&capabilities);
    let container_report = ContainerReport::of(context, backend.as_ref()).await;
    levels.push(container_report.level());
    let probes = probe_sandbox(context, &engine, &workspace).await;
    engine.shutdown().await;
    let mut checks = checks::all(context, &capabilities).await;
    checks.extend(container_report.checks());
    let (witnessed, problem) = match probes {
        Ok(witnessed) => (witnessed, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    Ok(DoctorReport {
        uid: rustix::process::geteuid().as_raw(),
        levels,
        probes: witnessed,
        problem,
        checks,
    })
}

/// Runs the sandbox probe at level high, without missing capabilities; returns its results, or why
/// there are none.
async fn probe_sandbox(
    context: &CliContext,
    engine: &Engine,
    workspace: &Path,
) -> Result<Vec<ProbeResult>, String> {
    let tcp = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let unix = format!("ostler-doctor-{}", std::process::id());
    let address = UnixAddress::from_abstract_name(unix.as_bytes()).map_err(|it| it.to_string())?;
    let _listener = UnixListener::bind_addr(&address).map_err(|error| error.to_string())?;
    let state = engine.settings().state_dir.join("doctor");
    let beside = workspace.with_file_name("beside");
    fs::write(&state, "witness").map_err(|error| error.to_string())?;
    let targets = ProbeTargets {
        pid: std::process::id(),
        tcp: tcp.local_addr().map_err(|error| error.to_string())?,
        unix,
        state,
        beside: beside.clone(),
        home: home(&context.env),
        daemon: context.dirs.daemon_socket(),
        inotify_instances: super::sandbox_probe::max_inotify_instances().unwrap_or(u64::MAX),
        workspace: workspace.to_owned(),
    };
    let mut probes = run_probe(engine, &targets).await?;
    // The probe's /tmp is private: what counts is whether the host's was written.
    for probe in probes
        .iter_mut()
        .filter(|probe| probe.what == "write beside the workspace")
    {
        probe.passed = !beside.exists();
        if probe.passed && probe.detail == "it worked" {
            "only in a private directory".clone_into(&mut probe.detail);
        }
    }
    Ok(probes)
}

async fn run_probe(engine: &Engine, targets: &ProbeTargets) -> Result<Vec<ProbeResult>, String> {
    let program: PathBuf = fs::canonicalize(daemon::executable()).map_err(|it| it.to_string())?;
    let targets_json = serde_json::to_string(targets).map_err(|error| error.to_string())?;
    let words = [
        ByteString::from(program.clone()),
        ByteString::from(PROBE_ARGUMENT),
        ByteString::from(targets_json),
    ];
    let mut request = StartRequest::argv(words, targets.workspace.clone());
    request.options.level = Some(IsolationLevel::High);
    request.options.sandbox.read.push(ByteString::from(program));
    request.options.sandbox.allow_degraded = missing_capabilities(engine.capabilities());
    request.options.sandbox.network = Some(ostler_model::NetworkAccess::None);
    request.options.timeout = Some(PROBE_TIMEOUT);
    let caller = daemon::stdio_session_caller("doctor");
    let result = engine.run(&caller, request, None).await;
    let info = result.map_err(|error| error.to_string())?.info;
    read_probes(engine, &caller, &info)
}

/// The capabilities to probe without: missing ones are reported in the table.
fn missing_capabilities(capabilities: &CapabilitySet) -> Vec<Capability> {
    capabilities.missing.iter().map(|it| it.ability).collect()
}

fn read_probes(
    engine: &Engine,
    caller: &Caller,
    info: &ExecutionInfo,
) -> Result<Vec<ProbeResult>, String> {
    let journal = engine.journal(caller, &info.id.short());
    let journal = journal.map_err(|error| error.to_string())?;
    let page = journal
        .read(&ByteQuery::starting_at(Cursor::START))
        .map_err(|error| error.to_string())?;
    let output_of = |stream| {
        let chunks = page
            .chunks
            .iter()
            .filter(move |chunk| chunk.stream == stream);
        chunks
            .flat_map(|chunk| chunk.bytes.iter().copied())
            .collect::<Vec<u8>>()
    };
    let ending = info.state.ending.as_ref();
    serde_json::from_slice(&output_of(StreamName::Stdout)).map_err(|_| {
        let ending = ending.map_or_else(String::new, |it| it.describe());
        let errors = output_of(StreamName::Stderr);
        format!("{ending}: {}", String::from_utf8_lossy(&errors).trim())
    })
}
