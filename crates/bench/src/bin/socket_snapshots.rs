//! Measures one inspection of the listening sockets of a tree, for `cargo xtask bench services`.
//!
//! `socket_snapshots STATE_DIR` reads one request per line, `WHAT SOCKETS COUNT`, and answers each with a line
//! of durations in nanoseconds, with that many other sockets listening on the host: `snapshot`
//! through the backend, `text` by reading the kernel's TCP tables as text.

use std::error::Error;
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ostler_backend::{
    Backend, ControlCommand, LaunchIo, LaunchPlan, ProcessEvent, SpawnHandle, Timeouts,
};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_model::{ByteString, ExecutionId, Limits, OrphanPolicy, SnapshotRequest};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Inspections share what they read for up to this time, in milliseconds; a measured one starts
/// later.
const APART_MS: u64 = 12;
/// The argument that makes this program the inspected tree.
const LISTEN_ARGUMENT: &str = "listen";
/// How often an inspection may miss a new socket.
const LOOKS: u32 = 1_000;
/// Sockets per address; further ones use the next address.
const PER_ADDRESS: usize = 1_000;

fn main() -> Outcome<()> {
    match std::env::args().nth(1).as_deref() {
        Some(ostler_backend_local::ZYGOTE_ARGUMENT) => ostler_backend_local::zygote_main(),
        Some(LISTEN_ARGUMENT) => listen(),
        Some(state) => serve(Path::new(state)),
        None => Err("socket_snapshots STATE_DIR".into()),
    }
}

/// The inspected tree.
fn listen() -> Outcome<()> {
    let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    loop {
        thread::park();
    }
}

/// The inspected tree, and the sockets of others.
struct Scene {
    runtime: Runtime,
    backend: LocalBackend,
    id: ExecutionId,
    handle: SpawnHandle,
    others: Vec<TcpListener>,
}

fn serve(state: &Path) -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, most)?;
    let mut scene = Scene::new(state)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or("WHAT SOCKETS COUNT");
        let (what, sockets, count) = (word()?, word()?.parse()?, word()?.parse()?);
        scene.surround(sockets)?;
        let took: Outcome<Vec<String>> = (0..count)
            .map(|_: u32| Ok(scene.timed(what)?.as_nanos().to_string()))
            .collect();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", took?.join(" "))?;
        out.flush()?;
    }
    scene.end()
}

impl Scene {
    fn new(state: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(state)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let zygote = ZygoteConfig::Executable(std::env::current_exe()?);
        let backend = runtime.block_on(LocalBackend::open(state, zygote))?;
        let program = std::env::current_exe()?;
        let plan = plan(&[program.to_str().ok_or("its path")?, LISTEN_ARGUMENT]);
        let id = plan.id;
        let mut handle = runtime.block_on(backend.spawn(plan))?;
        while let Some(report) = runtime.block_on(handle.events.recv()) {
            if matches!(report.event, ProcessEvent::Started { .. }) {
                break;
            }
        }
        let scene = Self {
            runtime,
            backend,
            id,
            handle,
            others: Vec::new(),
        };
        for _ in 0..LOOKS {
            apart();
            if scene.look()? == 1 {
                return Ok(scene);
            }
        }
        Err("its socket was never seen".into())
    }

    /// How many sockets the tree listens on.
    fn look(&self) -> Outcome<usize> {
        let what = SnapshotRequest {
            listeners: true,
            ..SnapshotRequest::default()
        };
        let seen = self
            .runtime
            .block_on(self.backend.snapshot(self.id, what))?;
        Ok(seen.listeners.len())
    }

    fn surround(&mut self, sockets: usize) -> Outcome<()> {
        self.others.truncate(sockets);
        while self.others.len() < sockets {
            let block = u8::try_from(self.others.len() / PER_ADDRESS + 1)?;
            let address = SocketAddrV4::new(Ipv4Addr::new(127, 0, 1, block), 0);
            self.others.push(TcpListener::bind(address)?);
        }
        Ok(())
    }

    fn timed(&self, what: &str) -> Outcome<Duration> {
        apart();
        let begin = Instant::now();
        match what {
            "observe" => assert_eq!(self.look()?, 1, "it listens"),
            "text" => {
                for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
                    std::hint::black_box(std::fs::read(table)?);
                }
            }
            _ => return Err(format!("unknown order {what}").into()),
        }
        Ok(begin.elapsed())
    }

    fn end(self) -> Outcome<()> {
        let Self {
            runtime,
            backend,
            mut handle,
            ..
        } = self;
        let stop = ControlCommand::Stop {
            grace: Duration::ZERO,
        };
        runtime.block_on(handle.control.send(stop))?;
        while runtime.block_on(handle.events.recv()).is_some() {}
        runtime.block_on(backend.close());
        Ok(())
    }
}

/// Waits until an earlier result is too old to be shared.
fn apart() {
    thread::park_timeout(Duration::from_millis(APART_MS));
}

fn plan(words: &[&str]) -> LaunchPlan {
    LaunchPlan {
        sandbox: None,
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{}".to_vec(),
        program: ByteString::from(words[0]),
        argv: words.iter().map(|word| ByteString::from(*word)).collect(),
        env: Vec::new(),
        cwd: ByteString::from("/"),
        io: LaunchIo::Empty,
        timeouts: Timeouts {
            wall: None,
            idle: None,
            grace: Duration::ZERO,
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits::default(),
        redact: Vec::new(),
        pinned_files: Vec::new(),
        report_start: true,
        lossless_reader: false,
        record_input: false,
        min_output_offset: 0,
        disk_scope: None,
        container: None,
        attachment: None,
        program_fallback: None,
        secret_files: Vec::new(),
    }
}
