//! Echo latency of one terminal: a key typed until its echo is known, through a place and on a
//! bare master. With `many`, what terminals at once cost.
//!
//! `echo_bench [KEYS]`, `echo_bench many [TERMINALS]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement, not part of the product"
)]

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_model::{ExecutionId, Leftovers, Limits, TermSize, Text};
use ostler_process::{
    Birth, Clocks, KEEPER_ARGUMENT, Keeper, LaunchIo, LaunchPlan, LocalPlace, Order, Place, Report,
    keeper_main,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

/// Between two keys: a fast typist's pause, in which everything goes to sleep.
const PAUSE: Duration = Duration::from_millis(3);

fn main() {
    let mut words = std::env::args().skip(1);
    let keys = match words.next().as_deref() {
        Some(KEEPER_ARGUMENT) => keeper_main(),
        Some("many") => {
            let count = words.next().map_or(1_000, |count| count.parse().unwrap());
            return tokio::runtime::Runtime::new()
                .unwrap()
                .block_on(many(count));
        }
        Some(keys) => keys.parse().unwrap(),
        None => 2_000,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for (name, script) in [
        ("echo of the terminal", "echo ready; exec sleep 1000"),
        ("cat in raw mode", "stty raw -echo; echo ready; exec cat"),
    ] {
        tell(name, "bare master", bare(script, keys));
        for (how, keeper) in [
            (
                "keeper",
                Keeper::Executable(std::env::current_exe().unwrap()),
            ),
            ("threads", Keeper::None),
        ] {
            let state = tempfile::tempdir().unwrap();
            let times = runtime.block_on(placed(state.path(), keeper, script, keys));
            tell(name, how, times);
        }
    }
}

fn tell(name: &str, how: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{name:22} {how:12} p50 {:>9.1?}  p90 {:>9.1?}  p99 {:>9.1?}  max {:>9.1?}",
        at(50),
        at(90),
        at(99),
        at(100)
    );
}

fn pause() {
    let until = Instant::now() + PAUSE;
    let left = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: PAUSE.as_nanos().try_into().unwrap(),
    };
    while Instant::now() < until {
        poll(&mut [], Some(&left)).unwrap();
    }
}

fn bare(script: &str, keys: usize) -> Vec<Duration> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    unlockpt(&master).unwrap();
    let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
    let mut child = std::process::Command::new("setsid")
        .args(["--ctty", "/bin/sh", "-c", script])
        .stdin(slave.try_clone().unwrap())
        .stdout(slave.try_clone().unwrap())
        .stderr(slave)
        .spawn()
        .unwrap();
    let mut buffer = [0; 4096];
    let mut read = || {
        let mut polled = [PollFd::new(&master, PollFlags::IN)];
        poll(&mut polled, None).unwrap();
        rustix::io::read(&master, &mut buffer).unwrap()
    };
    while read() < 5 {}
    let mut times = Vec::with_capacity(keys);
    for _ in 0..keys {
        pause();
        let begin = Instant::now();
        rustix::io::write(master.as_fd(), b"x").unwrap();
        read();
        times.push(begin.elapsed());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    times
}

async fn placed(state: &Path, keeper: Keeper, script: &str, keys: usize) -> Vec<Duration> {
    let place = LocalPlace::open(state, keeper).await.unwrap();
    let mut birth = place.spawn(plan(script)).await.unwrap();
    birth.control.send(Order::Watch(true)).await.unwrap();
    let mut end = 0;
    while end < 7 {
        end = output(&mut birth).await;
    }
    let mut times = Vec::with_capacity(keys);
    for _ in 0..keys {
        pause();
        let begin = Instant::now();
        birth
            .control
            .send(Order::Input(b"x".to_vec()))
            .await
            .unwrap();
        output(&mut birth).await;
        times.push(begin.elapsed());
    }
    let grace = Duration::ZERO;
    birth.control.send(Order::Stop { grace }).await.unwrap();
    while birth.reports.recv().await.is_some() {}
    place.close().await;
    times
}

async fn many(count: usize) {
    let state = tempfile::tempdir().unwrap();
    let keeper = Keeper::Executable(std::env::current_exe().unwrap());
    let place = LocalPlace::open(state.path(), keeper).await.unwrap();
    let (begin, mut births, mut leaders) = (Instant::now(), Vec::new(), Vec::new());
    for _ in 0..count {
        let mut plan = plan("exec cat");
        plan.report_start = true;
        births.push(place.spawn(plan).await.unwrap());
    }
    for birth in &mut births {
        let Some(Report::Started { pid, .. }) = birth.reports.recv().await else {
            panic!("it does not start");
        };
        leaders.push(pid);
    }
    println!("{count} terminals run after {:?}", begin.elapsed());
    let shims: Vec<u32> = leaders.iter().map(|pid| parent(*pid)).collect();
    let mut private: Vec<u64> = shims.iter().map(|pid| private_kb(*pid)).collect();
    private.sort_unstable();
    let open = |pid: &u32| {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count()
    };
    let descriptors = shims.iter().map(open).max();
    let (median, most) = (private[count / 2], private[count - 1]);
    println!("a shim: {descriptors:?} descriptors, {median} KB private, at most {most} KB");
    let begin = Instant::now();
    for birth in &births {
        let grace = Duration::from_secs(20);
        birth.control.send(Order::Stop { grace }).await.unwrap();
    }
    for birth in &mut births {
        while birth.reports.recv().await.is_some() {}
    }
    let exists = |pid: &&u32| Path::new(&format!("/proc/{pid}")).exists();
    let left = leaders.iter().filter(exists).count();
    println!("all ended after {:?}, {left} of them left", begin.elapsed());
    place.close().await;
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

fn private_kb(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let private = rollup.lines().filter(|line| line.starts_with("Private_"));
    private
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

async fn output(birth: &mut Birth) -> u64 {
    loop {
        if let Report::Output { end } = birth.reports.recv().await.unwrap() {
            return end;
        }
    }
}

fn plan(script: &str) -> LaunchPlan {
    LaunchPlan {
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{}".to_vec(),
        program: Text::from("/bin/sh"),
        argv: ["sh", "-c", script].map(Text::from).to_vec(),
        env: vec![(Text::from("PATH"), Text::from("/usr/bin:/bin"))],
        cwd: Text::from("/"),
        io: LaunchIo::Pty(TermSize { cols: 80, rows: 24 }),
        clocks: Clocks {
            wall: None,
            idle: None,
            grace: Duration::from_secs(1),
        },
        leftovers: Leftovers::Kill,
        limits: Limits::default(),
        redact: Vec::new(),
        report_start: false,
    }
}
