//! What a look at a service costs, its listening sockets included, with few and with many other
//! listening sockets on the host; and how much of a processor idle services take.
//!
//! `cargo run --release -p ostler-process --example scan -- [STATE_DIR] [SERVICES]`. Prints one
//! JSON object; times in microseconds.
#![expect(clippy::print_stdout, reason = "a program that measures")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use ostler_model::{ExecutionId, Leftovers, Limits, Observation, Text};
use ostler_process::{Clocks, Keeper, LaunchIo, LaunchPlan, LocalPlace, Order, Place, Report};
use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};

/// Becomes a server: two processes, each with this many more descriptors.
const SERVER_ARGUMENT: &str = "__server";
const DESCRIPTORS: usize = 20;
const OTHERS: [usize; 3] = [0, 1_000, 10_000];
const LOOKS: usize = 400;
/// Between two looks at an idle service, in milliseconds.
const IDLE_SCAN_MS: u64 = 2_000;
const LISTENERS: Observation = Observation {
    listeners: true,
    unix: false,
    foreground: false,
    disk: false,
};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some(ostler_process::KEEPER_ARGUMENT) => ostler_process::keeper_main(),
        Some(SERVER_ARGUMENT) => serve(words.len() > 2),
        Some(_) | None => measure(&words),
    }
}

/// A parent that holds nothing and a child that listens, as `npm run dev` has it.
fn serve(child: bool) {
    let _descriptors: Vec<_> = (0..DESCRIPTORS)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect();
    if child {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let mut out = std::io::stdout();
        writeln!(out, "{}", listener.local_addr().expect("bound")).expect("written");
        let _end = std::io::stdin().read(&mut [0]);
        return;
    }
    let own = std::env::current_exe().expect("a path");
    let child = std::process::Command::new(own)
        .args([SERVER_ARGUMENT, "child"])
        .spawn();
    let _ended = child.expect("started").wait();
}

fn measure(words: &[String]) {
    let parent = words.get(1).map_or("/dev/shm", String::as_str);
    let services: usize = words
        .get(2)
        .map_or(100, |word| word.parse().expect("a number"));
    let wanted = 20_000;
    let limit = Rlimit {
        current: Some(wanted),
        maximum: Some(wanted),
    };
    let _as_far_as_allowed = rustix::process::setrlimit(Resource::Nofile, limit);
    let state = tempfile::tempdir_in(parent).expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let keeper = Keeper::Executable(std::env::current_exe().expect("a path"));
    let opened = runtime.block_on(LocalPlace::open(state.path(), keeper));
    let place = opened.expect("it opens");
    runtime.block_on(async {
        let first = start(&place).await;
        let mut held: Vec<TcpListener> = Vec::new();
        for count in OTHERS {
            while held.len() < count {
                held.push(TcpListener::bind("127.0.0.1:0").expect("bound"));
            }
            let [best, median, worst] = look(&place, first.0).await;
            println!(
                "{{\"others\":{count},\"min\":{best},\"p50\":{median},\"p99\":{worst},\
                 \"proc_net_tcp\":{}}}",
                table()
            );
        }
        held.clear();
        let mut running = vec![first];
        while running.len() < services {
            running.push(start(&place).await);
        }
        idle(&place, &running).await;
        for (_, birth) in running {
            let _gone = birth.control.send(Order::CloseInput).await;
        }
        place.close().await;
    });
}

/// The old way, for comparison.
fn table() -> u128 {
    let mut times: Vec<u128> = (0..20)
        .map(|_| {
            let begin = Instant::now();
            let read = std::fs::read("/proc/net/tcp").and(std::fs::read("/proc/net/tcp6"));
            let _bytes = read.map(|bytes| bytes.len());
            begin.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    times[10]
}

async fn look(place: &LocalPlace, id: ExecutionId) -> [u128; 3] {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        // What was shared is stale by then.
        let next = tokio::time::Instant::now() + Duration::from_millis(11);
        let begin = Instant::now();
        let seen = place.observe(id, LISTENERS).await.expect("known");
        times.push(begin.elapsed().as_micros());
        assert_eq!((seen.listeners.len(), seen.members.len()), (1, 2));
        tokio::time::sleep_until(next).await;
    }
    times.sort_unstable();
    [times[0], times[LOOKS / 2], times[LOOKS * 99 / 100]]
}

/// Looks at each every two seconds, spread evenly, for ten seconds.
async fn idle(place: &LocalPlace, running: &[(ExecutionId, ostler_process::Birth)]) {
    let used = || clock_gettime(ClockId::ProcessCPUTime);
    let (begin, before) = (Instant::now(), used());
    let step = Duration::from_millis(IDLE_SCAN_MS) / u32::try_from(running.len()).expect("few");
    let mut next = tokio::time::Instant::now();
    for _ in 0..5 {
        for (id, _) in running {
            next += step;
            tokio::time::sleep_until(next).await;
            place.observe(*id, LISTENERS).await.expect("known");
        }
    }
    let after = used();
    let used = (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
    let percent = Duration::from_nanos(used.unsigned_abs()).as_secs_f64() * 100.0;
    println!(
        "{{\"services\":{},\"cpu_percent\":{:.2}}}",
        running.len(),
        percent / begin.elapsed().as_secs_f64()
    );
}

async fn start(place: &LocalPlace) -> (ExecutionId, ostler_process::Birth) {
    let own = std::env::current_exe().expect("a path");
    let program = Text::from(own.as_path());
    let plan = LaunchPlan {
        confinement: None,
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{}".to_vec(),
        argv: vec![program.clone(), Text::from(SERVER_ARGUMENT)],
        program,
        env: Vec::new(),
        cwd: Text::from("/"),
        io: LaunchIo::Open,
        clocks: Clocks {
            wall: None,
            idle: None,
            grace: Duration::from_secs(1),
        },
        leftovers: Leftovers::Keep,
        limits: Limits::default(),
        redact: Vec::new(),
        report_start: true,
    };
    let id = plan.id;
    let mut birth = place.spawn(plan).await.expect("born");
    birth.control.send(Order::Watch(true)).await.expect("sent");
    while let Some(report) = birth.reports.recv().await {
        if matches!(report, Report::Output { end } if end > 0) {
            break;
        }
    }
    (id, birth)
}
