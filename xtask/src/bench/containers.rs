//! Containers: the first and a warm start, and output, against the container engine's own commands.
//! The engine is the one of the tests (`tests/python/harness/docker.py`), without a registry.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::context::{BenchContext, Measure};
use super::report::{Promise, ReportRow};
use super::stats::{LatencySummary, median};
use crate::shell;
use crate::test_env::TestEnv;

/// What `bench containers` measures.
pub(super) const ALL: &[(&str, Measure)] = &[("starts", starts), ("output", output)];

/// The image of all containers.
const IMAGE: &str = "ostler-test/busybox";
/// How many containers are made.
const COLD_STARTS: usize = 12;
/// How many commands run in a container that is there.
const WARM_STARTS: usize = 60;
/// The processors of a container: more than the machine needs to have.
const PROCESSORS: u32 = 2;
/// What is printed, as the pattern of busybox's `yes`, which ends each with a newline.
const LINE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
/// How much is printed.
const OUTPUT_BYTES: usize = 100_000_000;
/// The engine, started and kept until its input ends; it prints its address.
const ENGINE: &str = "import sys; sys.path.insert(0, 'tests/python')
from harness.docker import BUSYBOX, DockerEngine
with DockerEngine(images=(BUSYBOX,)) as engine:
    print(engine.url, flush=True)
    sys.stdin.read()";

/// An engine of its own.
#[derive(Debug)]
struct Engine {
    process: Child,
    /// Its end ends the engine.
    input: Option<ChildStdin>,
    url: String,
}

impl Engine {
    fn start(bench: &BenchContext) -> Result<Self> {
        let python = bench.workspace.python();
        let mut command = shell::command(python, bench.workspace.root());
        command.args(["-c", ENGINE]);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        let said = process.stdout.take().context("its standard output")?;
        let mut url = String::new();
        BufReader::new(said).read_line(&mut url)?;
        ensure!(!url.is_empty(), "the container engine did not start");
        Ok(Self {
            process,
            input,
            url: url.trim().to_owned(),
        })
    }

    /// A command of the engine's command line.
    fn docker(&self, bench: &BenchContext, words: &[&str]) -> Command {
        let mut command = shell::command("docker", bench.workspace.root());
        command.args(words).env("DOCKER_HOST", &self.url);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.input.take());
        let _reaped = self.process.wait().is_err();
    }
}

/// A test environment whose commands run in containers of the engine.
fn environment(bench: &BenchContext, engine: &Engine, reuse: bool) -> Result<TestEnv> {
    let env = bench.idle_env()?;
    let directory = env.path().join("config/ostler");
    fs::create_dir(&directory)?;
    // As many processors as the engine's own containers have.
    let settings = format!(
        "[isolation]\nworkspaces = [{:?}]\n[container]\nsocket = {:?}\nimage = {IMAGE:?}\n\
         reuse = {reuse}\ncpus = \"{PROCESSORS}\"\n",
        env.work(),
        engine.url
    );
    fs::write(directory.join("config.toml"), settings)?;
    // The image's user is another one than this.
    fs::set_permissions(env.work(), fs::Permissions::from_mode(0o777))?;
    env.list()?;
    Ok(env)
}

/// The time of one command, which must succeed.
fn timed(mut command: Command) -> Result<Duration> {
    let begin = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = begin.elapsed();
    ensure!(status.success(), "{command:?}: {status}");
    Ok(took)
}

fn in_container(env: &TestEnv, words: &[&str]) -> Command {
    let run = ["run", "--isolation", "container", "--"];
    env.ostler(&[&run, words].concat())
}

/// From the start of the command line to its end, both ways, turn about: a container made for `true`,
/// and `true` in one that runs.
fn starts(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let engine = Engine::start(bench)?;
    let cold_env = environment(bench, &engine, false)?;
    let warm_env = environment(bench, &engine, true)?;
    let standing = ["run", "-d", "--name", "standing", IMAGE, "sleep", "100000"];
    timed(engine.docker(bench, &standing))?;
    timed(in_container(&warm_env, &["true"]))?;
    let (mut cold, mut run, mut warm, mut exec) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.count(COLD_STARTS) {
        cold.push(timed(in_container(&cold_env, &["true"]))?);
        run.push(timed(
            engine.docker(bench, &["run", "--rm", IMAGE, "true"]),
        )?);
    }
    for _ in 0..bench.count(WARM_STARTS) {
        warm.push(timed(in_container(&warm_env, &["true"]))?);
        exec.push(timed(engine.docker(bench, &["exec", "standing", "true"]))?);
    }
    let [cold, run, warm, exec] =
        [cold, run, warm, exec].map(|it| LatencySummary::from_samples(&it));
    for env in [cold_env, warm_env] {
        env.shut_down()?;
    }
    Ok(vec![
        ReportRow::ratio(
            "`ostler run` in a new container against `docker run --rm`, p50",
            cold.p50,
            run.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio("the same, p99", cold.p99, run.p99, "ms", Promise::NONE),
        ReportRow::ratio(
            "`ostler run` in a warm container against `docker exec`, p50",
            warm.p50,
            exec.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio("the same, p99", warm.p99, exec.p99, "ms", Promise::NONE),
    ])
}

/// Printing 100 MB and reading them from the log while they are printed: `ostler logs -f` against
/// `docker logs -f`; both keep them on disk.
fn output(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let engine = Engine::start(bench)?;
    let env = environment(bench, &engine, true)?;
    timed(in_container(&env, &["true"]))?;
    let bytes = bench.count(OUTPUT_BYTES);
    let script = format!("yes {LINE} | head -c {bytes}");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let mut start = env.ostler(&["run", "-d", "--isolation", "container", "--"]);
        start.args(["sh", "-c", &script]);
        let begin = Instant::now();
        let started = start.output()?;
        ensure!(started.status.success(), "{start:?}");
        let id = String::from_utf8(started.stdout)?.trim().to_owned();
        timed(env.ostler(&["logs", "-f", &id]))?;
        let took = begin.elapsed();
        let begin = Instant::now();
        let name = format!("printing-{round}");
        timed(engine.docker(
            bench,
            &["run", "-d", "--name", &name, IMAGE, "sh", "-c", &script],
        ))?;
        timed(engine.docker(bench, &["logs", "-f", &name]))?;
        let peer = begin.elapsed();
        timed(engine.docker(bench, &["rm", "-f", &name]))?;
        if round > 0 {
            ours.push(took.as_secs_f64() * 1_000.0);
            theirs.push(peer.as_secs_f64() * 1_000.0);
        }
    }
    env.shut_down()?;
    Ok(vec![ReportRow::ratio(
        "100 MB printed in a container and read from its log meanwhile, against `docker logs -f`",
        median(&ours),
        median(&theirs),
        "ms",
        Promise::at_most(1.0, "≤ 1× docker logs -f"),
    )])
}
