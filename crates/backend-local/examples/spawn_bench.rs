//! Measures a durable, journalled command against the baseline: posix_spawn(3), one pipe, read to
//! the end, waitpid(2), in a small process of its own. Rounds of both are interleaved.
//!
//! `spawn_bench [STATE_DIR] [ROUNDS] [COMMANDS_PER_ROUND] [PAUSE_MS]`: a pause precedes each of our
//! commands.
#![expect(unsafe_code, reason = "the floor is the C library's own spawn")]
#![expect(clippy::print_stdout, reason = "a report for people")]

use std::ffi::{CString, c_char};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ostler_backend::{Backend, LaunchIo, LaunchPlan, ProcessEvent, Timeouts};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_journal::{ByteQuery, Journal};
use ostler_model::{ByteString, Cursor, ExecutionId, Limits, OrphanPolicy};

const WORDS: [&str; 3] = ["/bin/sh", "-c", "echo hi"];
const FLOOR_ARGUMENT: &str = "__floor";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some(ostler_backend_local::ZYGOTE_ARGUMENT) => ostler_backend_local::zygote_main(),
        Some(FLOOR_ARGUMENT) => floor_role(),
        Some(_) | None => bench(&words),
    }
}

fn bench(words: &[String]) {
    let number = |backend: usize, default| {
        words
            .get(backend)
            .map_or(default, |word| word.parse().expect("a number"))
    };
    let (rounds, count) = (number(2, 6), number(3, 200));
    let pause = Duration::from_millis(number(4, 0) as u64);
    let parent = words
        .get(1)
        .map_or_else(|| "/dev/shm".to_owned(), Clone::clone);
    let state = tempfile::tempdir_in(parent).expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let zygote = ZygoteConfig::Executable(std::env::current_exe().expect("a path"));
    let backend = runtime
        .block_on(LocalBackend::open(state.path(), zygote))
        .expect("it opens");
    let mut floor = Floor::start();
    for in_flight in [1, 8] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (mut our_time, mut their_time) = (Duration::ZERO, Duration::ZERO);
        for round in 0..=rounds {
            let begin = Instant::now();
            let floors = floor.run(in_flight, count);
            let floor_time = begin.elapsed();
            let begin = Instant::now();
            let mine = runtime.block_on(place_round(
                &backend,
                state.path(),
                (in_flight, count, pause),
            ));
            if round > 0 {
                their_time += floor_time;
                our_time += begin.elapsed();
                theirs.extend(floors);
                ours.extend(mine);
            }
        }
        report(in_flight, &mut theirs, &mut ours);
        println!(
            "  rate {:.2}",
            their_time.as_secs_f64() / our_time.as_secs_f64()
        );
    }
    memory(&runtime, &backend, state.path());
    floor.end();
    runtime.block_on(backend.close());
}

fn report(in_flight: usize, floor: &mut [u64], ours: &mut [u64]) {
    floor.sort_unstable();
    ours.sort_unstable();
    let at = |times: &[u64], percent: usize| times[(times.len() - 1) * percent / 100];
    for percent in [0, 50, 99] {
        let (floor, ours) = (at(floor, percent), at(ours, percent));
        #[expect(clippy::cast_precision_loss, reason = "microseconds are small")]
        let ratio = ours as f64 / floor as f64;
        println!("{in_flight} in flight p{percent}: floor {floor} us, ours {ours} us, x{ratio:.2}");
    }
}

async fn place_round(
    backend: &LocalBackend,
    state: &Path,
    (in_flight, count, pause): (usize, usize, Duration),
) -> Vec<u64> {
    let lane = async || {
        let mut times = Vec::with_capacity(count / in_flight);
        for _ in 0..count / in_flight {
            if !pause.is_zero() {
                tokio::time::sleep_until(tokio::time::Instant::now() + pause).await;
            }
            let begin = Instant::now();
            let plan = plan(&WORDS);
            let dir = state.join("executions").join(plan.id.to_string());
            let mut handle = backend.spawn(plan).await.expect("it spawns");
            while let Some(report) = handle.events.recv().await {
                if let ProcessEvent::Exited { record, .. } = report.event {
                    assert_eq!(record.output_end, 3);
                }
            }
            let page = Journal::open(&dir)
                .and_then(|journal| journal.read(&ByteQuery::starting_at(Cursor::START)));
            assert_eq!(page.expect("readable").chunks[0].bytes, b"hi\n");
            times.push(micros(begin));
        }
        times
    };
    let lanes = (0..in_flight).map(|_| lane());
    let mut all = Vec::new();
    for times in futures_util::future::join_all(lanes).await {
        all.extend(times);
    }
    all
}

fn micros(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn plan(words: &[&str]) -> LaunchPlan {
    LaunchPlan {
        sandbox: None,
        id: ExecutionId::mint(),
        attempt: 1,
        spec: vec![b' '; 600],
        program: ByteString::from(words[0]),
        argv: words.iter().map(|word| ByteString::from(*word)).collect(),
        env: std::env::vars_os()
            .map(|(name, value)| (ByteString::from(name), ByteString::from(value)))
            .collect(),
        cwd: ByteString::from("/"),
        io: LaunchIo::Empty,
        timeouts: Timeouts {
            wall: Some(Duration::from_secs(15)),
            idle: None,
            grace: Duration::from_secs(5),
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits {
            pids: Some(4096),
            ..Limits::default()
        },
        redact: Vec::new(),
        pinned_files: Vec::new(),
        report_start: false,
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

/// Private memory of shims whose commands run.
fn memory(runtime: &tokio::runtime::Runtime, backend: &LocalBackend, state: &Path) {
    let mut sizes = Vec::new();
    let mut handles = Vec::new();
    for _ in 0..50 {
        let mut plan = plan(&["/bin/sleep", "300"]);
        plan.report_start = true;
        let spec = state
            .join("executions")
            .join(plan.id.to_string())
            .join("spec.json");
        let mut handle = runtime.block_on(backend.spawn(plan)).expect("it spawns");
        runtime.block_on(handle.events.recv()).expect("it runs");
        let spec = std::fs::read_to_string(spec).expect("written");
        let pid = spec
            .split("\"shim_pid\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        sizes.push(private_kib(pid.expect("a pid")));
        handles.push(handle);
    }
    sizes.sort_unstable();
    println!(
        "private memory of a shim: median {} KiB, most {} KiB",
        sizes[25], sizes[49]
    );
    for mut handle in handles {
        runtime.block_on(async {
            let grace = Duration::ZERO;
            handle
                .control
                .send(ostler_backend::ControlCommand::Stop { grace })
                .await
                .expect("sent");
            while handle.events.recv().await.is_some() {}
        });
    }
}

fn private_kib(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it lives");
    let private = text.lines().filter(|line| line.starts_with("Private_"));
    private
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

/// The baseline's process: for each line `LANES COUNT`, one line of microseconds.
struct Floor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Floor {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command
            .arg(FLOOR_ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        Self {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    fn end(mut self) {
        drop(self.input);
        self.child.wait().expect("it ends");
    }

    fn run(&mut self, lanes: usize, count: usize) -> Vec<u64> {
        writeln!(self.input, "{lanes} {count}").expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        line.split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect()
    }
}

fn floor_role() {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        let (lanes, count) = line.split_once(' ').expect("two numbers");
        let lanes: usize = lanes.parse().expect("a number");
        let count: usize = count.parse().expect("a number");
        let each = count / lanes;
        let lane = move || (0..each).map(|_| floor_once()).collect::<Vec<u64>>();
        let threads: Vec<_> = (0..lanes).map(|_| std::thread::spawn(lane)).collect();
        let times = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("it ends"));
        let times: Vec<String> = times.map(|time| time.to_string()).collect();
        println!("{}", times.join(" "));
    }
}

fn floor_once() -> u64 {
    let begin = Instant::now();
    let words = WORDS.map(|word| CString::new(word).expect("no NUL"));
    let mut argv: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let mut ends = [0; 2];
    // SAFETY: plain calls of the C library on values that live through them; the two ends of
    // the pipe are owned from here on.
    let (mut read, pid) = unsafe {
        unsafe extern "C" {
            static environ: *const *mut c_char;
        }
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        let (read, write) = (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]));
        let mut actions = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&raw mut actions);
        libc::posix_spawn_file_actions_adddup2(&raw mut actions, write.as_raw_fd(), 1);
        let mut pid = 0;
        let attributes = std::ptr::null();
        let program = words[0].as_ptr();
        let spawned = libc::posix_spawn(
            &raw mut pid,
            program,
            &raw const actions,
            attributes,
            argv.as_ptr(),
            environ,
        );
        assert_eq!(spawned, 0);
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        (std::fs::File::from(read), pid)
    };
    let mut out = Vec::new();
    read.read_to_end(&mut out).expect("readable");
    let mut status = 0;
    // SAFETY: the out-pointer is valid, the child is ours.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((out.as_slice(), status), (&b"hi\n"[..], 0));
    micros(begin)
}
