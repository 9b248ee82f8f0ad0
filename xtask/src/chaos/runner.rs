//! Runs rounds of chaos.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;

use super::calls::CallsInFlight;
use super::checks::{self, OutputGuarantee};
use super::fault::{self, ActiveFault};
use super::plan::{CommandPlan, Fault, RoundPlan, Victim};
use super::terminal_sessions::TerminalSession;
use crate::console::{CheckResult, print_line};
use crate::test_counts::TestCounts;
use crate::test_env::{CliInfo, ProcessHandle, TestEnv};
use crate::workspace::{Profile, Workspace};

/// What chaos can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct ChaosArgs {
    /// How many rounds
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Repeat the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
}

/// The timeout for a killed process to exit, in milliseconds.
const KILLED_MS: u64 = 5_000;

/// Runs chaos from the command line.
pub(crate) fn run(workspace: &Workspace, args: &ChaosArgs) -> Result<CheckResult> {
    let tally = torture(&workspace.ostler(Profile::Dist), args.rounds, args.seed)?;
    Ok(CheckResult::from_success(tally.failed == 0))
}

/// Runs rounds in one environment; returns how many passed.
pub(crate) fn torture(binary: &Path, rounds: u32, seed: Option<u64>) -> Result<TestCounts> {
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    print_line(format_args!("chaos: {rounds} rounds, seed {seed}"));
    let begin = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let mut env = TestEnv::new(&std::env::temp_dir(), binary)?;
    let mounted = fault::mount_state(&env);
    let mut tally = TestCounts::default();
    for number in 1..=rounds {
        let mut round = RoundPlan::draw(&mut rng);
        round.fault = round.fault.filter(|fault| mounted || !fault.is_of_disk());
        let outcome = run_round(&env, &round);
        if let Err(error) = &outcome {
            print_line(format_args!(
                "round {number} failed: {error:#}\n  {round:?}"
            ));
        }
        tally += TestCounts::from_success(outcome.is_ok());
    }
    if let Err(error) = env.shut_down() {
        print_line(format_args!("shutdown failed: {error:#}"));
        tally += TestCounts::from_success(false);
    }
    if tally.failed == 0 && mounted {
        fault::unmount_state(&env)?;
    }
    if tally.failed > 0 {
        env.keep_on_drop();
        print_line(format_args!(
            "chaos: the state is kept in {}",
            env.path().display()
        ));
    }
    let took = begin.elapsed().as_secs_f64();
    print_line(format_args!(
        "chaos: {} held, {} failed, {took:.1} s, seed {seed}",
        tally.passed, tally.failed
    ));
    Ok(tally)
}

/// A command that was started, or whose start the kill made uncertain.
struct StartedCommand {
    plan: CommandPlan,
    id: Result<String>,
}

fn run_round(env: &TestEnv, round: &RoundPlan) -> Result<()> {
    if round.burst {
        return kill_burst(env, round);
    }
    let talk = round
        .dialogue
        .map(|dialogue| TerminalSession::start(env, dialogue));
    let talk = talk.transpose()?;
    let mut commands = Vec::new();
    for plan in &round.commands {
        commands.push(StartedCommand {
            plan: *plan,
            id: Ok(start(env, plan)?),
        });
    }
    let calls = (!round.calls.is_empty()).then(|| CallsInFlight::send(env, &round.calls));
    let calls = calls.transpose()?;
    thread::park_timeout(round.delay);
    // Found before the kill.
    let victims = victims(env, round.victim)?;
    let fault = round.fault.map(|fault| ActiveFault::inject(env, fault));
    let fault = fault.transpose()?;
    if round.victim == Victim::Shim {
        let first = commands.remove(0);
        kill_shim(env, &first.id?)?;
    } else {
        kill(&victims)?;
    }
    if let Some(fault) = fault {
        let listed = env.list().context("ps while the fault is there");
        fault.clear()?;
        listed?;
    }
    if let Some(calls) = calls {
        calls.check(round.fault)?;
    }
    if let Some(talk) = talk {
        talk.check(env)?;
    }
    let keeping = if round.fault.is_some_and(Fault::is_of_disk) {
        OutputGuarantee::CompleteOrDegraded
    } else {
        OutputGuarantee::Complete
    };
    settle(env, commands, keeping)
}

fn start(env: &TestEnv, plan: &CommandPlan) -> Result<String> {
    if plan.terminal {
        return env.start_in_terminal(&["sh", "-c", &plan.script()]);
    }
    env.start(&plan.script())
}

/// Kills during the starts: a start with a response counts, one that was refused must have left
/// nothing.
fn kill_burst(env: &TestEnv, round: &RoundPlan) -> Result<()> {
    // There must be a daemon to be killed.
    env.ostler(&["run", "--", "true"]).output()?;
    let commands = thread::scope(|scope| {
        let starts: Vec<_> = round
            .commands
            .iter()
            .map(|plan| {
                scope.spawn(|| StartedCommand {
                    plan: *plan,
                    id: start(env, plan),
                })
            })
            .collect();
        thread::park_timeout(round.delay / 10);
        let killed = victims(env, round.victim).and_then(|victims| kill(&victims));
        let started = starts
            .into_iter()
            .map(|start| start.join())
            .collect::<Vec<_>>();
        killed.map(|()| started)
    })?;
    let joined: thread::Result<Vec<StartedCommand>> = commands.into_iter().collect();
    let Ok(commands) = joined else {
        bail!("a start panicked");
    };
    settle(env, commands, OutputGuarantee::Complete)
}

fn victims(env: &TestEnv, victim: Victim) -> Result<Vec<ProcessHandle>> {
    // A zygote that was killed earlier is only replaced once further shims are needed.
    let daemon = env.daemon().context("before the kill")?;
    let zygotes = env.processes_named("ostler-keeper");
    Ok(match victim {
        Victim::Daemon => vec![daemon],
        Victim::Keeper => zygotes,
        Victim::DaemonAndKeeper => std::iter::once(daemon).chain(zygotes).collect(),
        Victim::Shim => Vec::new(),
    })
}

fn kill(victims: &[ProcessHandle]) -> Result<()> {
    for proc in victims {
        proc.kill();
    }
    let deadline = Instant::now() + Duration::from_millis(KILLED_MS);
    let staying = victims.iter().find(|proc| !proc.wait_gone(deadline));
    staying.map_or(Ok(()), |proc| bail!("{proc} survived SIGKILL"))
}

fn kill_shim(env: &TestEnv, id: &str) -> Result<()> {
    let info = env.info(id)?;
    env.shim(&info)?.kill();
    checks::check_lost(env, id, &info)
}

/// Checks everything that was started with the (possibly new) daemon.
fn settle(env: &TestEnv, commands: Vec<StartedCommand>, guarantee: OutputGuarantee) -> Result<()> {
    env.list().context("ps after the kill")?;
    for StartedCommand { plan, id } in commands {
        let Ok(id) = id else {
            continue;
        };
        let info = check_command(env, &plan, &id, guarantee)?;
        checks::check_tree_gone(&id, &info)?;
    }
    remove_all(env)
}

/// A start whose response was lost may have succeeded: it is listed and can be stopped, and then no
/// process of this environment runs.
fn remove_all(env: &TestEnv) -> Result<()> {
    for info in env
        .list()?
        .into_iter()
        .filter(|info| info.status == "running")
    {
        env.stop(&info.uuid)?;
        checks::check_tree_gone(&info.uuid, &info)?;
    }
    let strays = env.stray_processes();
    ensure!(
        strays.is_empty(),
        "processes of no listed execution: {strays:?}"
    );
    Ok(())
}

fn check_command(
    env: &TestEnv,
    plan: &CommandPlan,
    id: &str,
    guarantee: OutputGuarantee,
) -> Result<CliInfo> {
    match plan.lines {
        Some(lines) => checks::check_finished(env, id, plan, lines, guarantee),
        None => checks::check_stopped(env, id),
    }
}
