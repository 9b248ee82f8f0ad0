//! Rounds of killing and looking.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;

use super::calls::CallsInFlight;
use super::checks::{self, Keeping};
use super::dialogue::Talk;
use super::fault::{self, ActiveFault};
use super::plan::{Fault, Plan, Round, Victim};
use crate::lab::{Info, Lab, Proc};
use crate::test::Tally;
use crate::ui::{Verdict, say};
use crate::workspace::{Profile, Workspace};

/// What chaos can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many rounds
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Repeat the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
}

/// How long a killed process may take to be gone, in milliseconds.
const KILLED_MS: u64 = 5_000;

/// Chaos by hand.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Verdict> {
    let tally = torture(&workspace.ostler(Profile::Release), args.rounds, args.seed)?;
    Ok(Verdict::of(tally.failed == 0))
}

/// That many rounds in one lab; how many held.
pub(crate) fn torture(binary: &Path, rounds: u32, seed: Option<u64>) -> Result<Tally> {
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    say(format_args!("chaos: {rounds} rounds, seed {seed}"));
    let begin = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let mut lab = Lab::new(&std::env::temp_dir(), binary)?;
    let mounted = fault::mount_state(&lab);
    let mut tally = Tally::default();
    for number in 1..=rounds {
        let mut round = Round::draw(&mut rng);
        round.fault = round.fault.filter(|fault| mounted || !fault.is_of_disk());
        let outcome = play(&lab, &round);
        if let Err(error) = &outcome {
            say(format_args!(
                "round {number} failed: {error:#}\n  {round:?}"
            ));
        }
        tally += Tally::of(outcome.is_ok());
    }
    if let Err(error) = lab.shut_down() {
        say(format_args!("shutdown failed: {error:#}"));
        tally += Tally::of(false);
    }
    if tally.failed == 0 && mounted {
        fault::unmount_state(&lab)?;
    }
    if tally.failed > 0 {
        lab.keep();
        say(format_args!(
            "chaos: the state is kept in {}",
            lab.path().display()
        ));
    }
    let took = begin.elapsed().as_secs_f64();
    say(format_args!(
        "chaos: {} held, {} failed, {took:.1} s, seed {seed}",
        tally.passed, tally.failed
    ));
    Ok(tally)
}

/// One command that was started, or whose start the kill made uncertain.
struct Started {
    plan: Plan,
    id: Result<String>,
}

fn play(lab: &Lab, round: &Round) -> Result<()> {
    if round.burst {
        return burst(lab, round);
    }
    let talk = round.dialogue.map(|dialogue| Talk::begin(lab, dialogue));
    let talk = talk.transpose()?;
    let mut commands = Vec::new();
    for plan in &round.commands {
        commands.push(Started {
            plan: *plan,
            id: Ok(start(lab, plan)?),
        });
    }
    let calls = (!round.calls.is_empty()).then(|| CallsInFlight::send(lab, &round.calls));
    let calls = calls.transpose()?;
    thread::park_timeout(round.delay);
    // Found while it can still be asked.
    let victims = victims(lab, round.victim)?;
    let fault = round.fault.map(|fault| ActiveFault::make(lab, fault));
    let fault = fault.transpose()?;
    if round.victim == Victim::Shim {
        let first = commands.remove(0);
        lose_shim(lab, &first.id?)?;
    } else {
        kill(&victims)?;
    }
    if let Some(fault) = fault {
        let listed = lab.list().context("ps while the fault is there");
        fault.mend()?;
        listed?;
    }
    if let Some(calls) = calls {
        calls.check(round.fault)?;
    }
    if let Some(talk) = talk {
        talk.conclude(lab)?;
    }
    let keeping = if round.fault.is_some_and(Fault::is_of_disk) {
        Keeping::OrTold
    } else {
        Keeping::Everything
    };
    settle(lab, commands, keeping)
}

fn start(lab: &Lab, plan: &Plan) -> Result<String> {
    if plan.terminal {
        return lab.start_in_terminal(&["sh", "-c", &plan.script()]);
    }
    lab.start(&plan.script())
}

/// The kill falls among the starts: a start that was answered counts, one that was refused
/// must have left nothing.
fn burst(lab: &Lab, round: &Round) -> Result<()> {
    // Somebody must be there to be killed.
    lab.ostler(&["run", "--", "true"]).output()?;
    let commands = thread::scope(|scope| {
        let starts: Vec<_> = round
            .commands
            .iter()
            .map(|plan| {
                scope.spawn(|| Started {
                    plan: *plan,
                    id: start(lab, plan),
                })
            })
            .collect();
        thread::park_timeout(round.delay / 10);
        let killed = victims(lab, round.victim).and_then(|victims| kill(&victims));
        let started = starts
            .into_iter()
            .map(|start| start.join())
            .collect::<Vec<_>>();
        killed.map(|()| started)
    })?;
    let joined: thread::Result<Vec<Started>> = commands.into_iter().collect();
    let Ok(commands) = joined else {
        bail!("a start panicked");
    };
    settle(lab, commands, Keeping::Everything)
}

fn victims(lab: &Lab, victim: Victim) -> Result<Vec<Proc>> {
    // A keeper that was killed before is only replaced once more shims are wanted.
    let daemon = lab.daemon().context("before the kill")?;
    let keepers = lab.roles("ostler-keeper");
    Ok(match victim {
        Victim::Daemon => vec![daemon],
        Victim::Keeper => keepers,
        Victim::DaemonAndKeeper => std::iter::once(daemon).chain(keepers).collect(),
        Victim::Shim => Vec::new(),
    })
}

fn kill(victims: &[Proc]) -> Result<()> {
    for proc in victims {
        proc.kill();
    }
    let deadline = Instant::now() + Duration::from_millis(KILLED_MS);
    let staying = victims.iter().find(|proc| !proc.wait_gone(deadline));
    staying.map_or(Ok(()), |proc| bail!("{proc} survived SIGKILL"))
}

fn lose_shim(lab: &Lab, id: &str) -> Result<()> {
    let info = lab.info(id)?;
    lab.shim(&info)?.kill();
    checks::lost(lab, id, &info)
}

/// Asks the (possibly new) daemon for everything that was started.
fn settle(lab: &Lab, commands: Vec<Started>, keeping: Keeping) -> Result<()> {
    lab.list().context("ps after the kill")?;
    for Started { plan, id } in commands {
        let Ok(id) = id else {
            continue;
        };
        let info = conclude(lab, &plan, &id, keeping)?;
        checks::nobody_left(&id, &info)?;
    }
    sweep(lab)
}

/// A start whose answer the kill swallowed may have begun all the same: it is listed, it can
/// be stopped, and then nothing of this lab runs.
fn sweep(lab: &Lab) -> Result<()> {
    for info in lab
        .list()?
        .into_iter()
        .filter(|info| info.status == "running")
    {
        lab.stop(&info.uuid)?;
        checks::nobody_left(&info.uuid, &info)?;
    }
    let strays = lab.strays();
    ensure!(
        strays.is_empty(),
        "processes of no listed execution: {strays:?}"
    );
    Ok(())
}

fn conclude(lab: &Lab, plan: &Plan, id: &str, keeping: Keeping) -> Result<Info> {
    match plan.lines {
        Some(lines) => checks::finished(lab, id, plan, lines, keeping),
        None => checks::stopped(lab, id),
    }
}
