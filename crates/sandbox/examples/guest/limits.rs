//! Slots on cgroups of version 2 with all controllers.

use std::os::fd::AsFd;

use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, Capability, LimitBackend, LimitKind, Limits, SandboxSpec, Signal};
use ostler_sandbox::cgroup::{
    CgroupRoot, CgroupSlot, CgroupVersion, Controller, FreezeOutcome, HelperPids, ShimName,
};
use ostler_sandbox::{HostFacts, Jail, JailOptions, JailPlan, Restrictions};

use rustix::event::PollFlags;

use crate::report::{Outcome, Report, holds};
use crate::subject::{clear, end, start, start_within, until, until_within};

type Check = fn(&mut CgroupSlot) -> Outcome;

pub(crate) fn check(report: &mut Report) {
    let (subtree, abilities) = ostler_sandbox::probe(false);
    report.that(
        "cgroups of version 2 limit everything",
        holds(abilities.backend == LimitBackend::CgroupV2, || {
            format!("{abilities:?}")
        }),
    );
    for controller in [Controller::Pids, Controller::Memory, Controller::Cpu] {
        let seen = subtree.limit_version(controller);
        report.that(
            &format!("the {} controller is of version 2", controller.name()),
            holds(seen == Some(CgroupVersion::Two), || format!("{seen:?}")),
        );
    }
    for ability in [
        Capability::TreeKill,
        Capability::OwnCgroup,
        Capability::Freezer,
    ] {
        report.that(
            &format!("{} is there", ability.as_str()),
            holds(abilities.has(ability), || {
                format!("{:?}", abilities.missing)
            }),
        );
    }
    let checks: [(&str, Check); 7] = [
        ("pids.max stops forks and is told", pids),
        ("memory.max kills and is told", memory),
        (
            "a kill that was not for memory is not told as one",
            not_memory,
        ),
        ("cpu.max holds a spinner down", cpu),
        ("cgroup.kill ends who left the group", kill),
        (
            "memory.max holds in a cell, and its end is the cell's",
            in_cell,
        ),
        ("cgroup.freeze makes it stand still", freeze),
    ];
    for (serial, (what, check)) in (1..).zip(checks) {
        let mut slot = slot(&subtree, serial);
        report.that(what, check(&mut slot));
        slot.remove();
    }
    report.that("a slot is reused with other limits", reuse(&subtree));
}

fn slot(subtree: &CgroupRoot, serial: u32) -> CgroupSlot {
    let pid = i32::try_from(std::process::id()).unwrap_or(1);
    subtree.slot(ShimName {
        pid,
        start: 1,
        serial,
    })
}

fn limited(slot: &mut CgroupSlot, limits: Limits, script: &str) -> Result<WaitStatus, String> {
    let entry = slot
        .prepare(&limits, &HelperPids::default())
        .map_err(|errno| errno.to_string())?;
    let child = start(&entry, script)?;
    end(&child)
}

fn pids(slot: &mut CgroupSlot) -> Outcome {
    let limits = Limits {
        pids: Some(6),
        ..Limits::default()
    };
    // A shell that cannot fork ends with 2.
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; exit 0";
    let status = limited(slot, limits, script)?;
    let (hits, members) = (slot.take_reached_limits(), slot.members().len());
    slot.kill();
    let seen = || format!("{status:?}, {hits:?}, {members} left");
    let refused = status == WaitStatus::Code(2) && members <= 6;
    holds(refused && hits == [LimitKind::Pids], seen)
}

/// The interval of checks for out-of-memory kills, in milliseconds.
const OOM_LOOK_MS: u64 = 50;

const MEMORY: Limits = Limits {
    memory_bytes: Some(16 << 20),
    pids: None,
    cpu_millis: None,
    open_files: None,
    file_bytes: None,
    disk_bytes: None,
};

fn memory(slot: &mut CgroupSlot) -> Outcome {
    // One line without an end, which tail keeps in memory.
    let status = limited(slot, MEMORY, "exec tail /dev/zero")?;
    let (kills, hits) = (slot.oom_kills(), slot.take_reached_limits());
    let killed = status == WaitStatus::Signal(Signal::KILL);
    holds(killed && kills > 0 && hits == [LimitKind::Memory], || {
        format!("{status:?}, {kills} kills, {hits:?}")
    })
}

/// The init is spawned in the slot too: what kills the slot kills the jail.
fn in_cell(slot: &mut CgroupSlot) -> Outcome {
    let wanted = SandboxSpec {
        workspace: Some(ByteString::from("/data/work".to_owned())),
        ..SandboxSpec::default()
    };
    let entry = slot
        .prepare(
            &MEMORY,
            &HelperPids {
                pids: &[],
                in_slot: 1,
            },
        )
        .map_err(|errno| errno.to_string())?;
    let plan = JailPlan::compile(&wanted, &HostFacts::read(&wanted));
    let at = JailOptions {
        cgroup: entry.clone_into(),
        ..JailOptions::default()
    };
    let cell = plan.and_then(|plan| Jail::build(&plan, at));
    let cell = cell.map_err(|error| error.to_string())?;
    let restrictions = Restrictions::new(&wanted);
    let script = "setsid sleep 1000 & tail /dev/zero; sleep 1000";
    let child = start_within(&entry, Some((&cell, &restrictions)), script)?;
    while slot.oom_kills() == 0 {
        let (event, descriptor) = (PollFlags::IN, child.pidfd.as_fd());
        if let Ok(()) = until_within(descriptor, event, OOM_LOOK_MS) {
            return Err("it ended before its memory did".to_owned());
        }
    }
    let hits = slot.take_reached_limits();
    clear(slot, &child)?;
    until(cell.pidfd(), PollFlags::IN)?;
    let members = wait_empty(slot);
    holds(hits == [LimitKind::Memory] && members.is_empty(), || {
        format!("{hits:?}, left: {members:?}")
    })
}

fn not_memory(slot: &mut CgroupSlot) -> Outcome {
    let status = limited(slot, MEMORY, "kill -9 $$")?;
    let (kills, hits) = (slot.oom_kills(), slot.take_reached_limits());
    let killed = status == WaitStatus::Signal(Signal::KILL);
    holds(killed && kills == 0 && hits.is_empty(), || {
        format!("{status:?}, {kills} kills, {hits:?}")
    })
}

fn cpu(slot: &mut CgroupSlot) -> Outcome {
    let limits = Limits {
        cpu_millis: Some(100),
        ..Limits::default()
    };
    limited(slot, limits, "timeout 3 sh -c 'while :; do :; done'")?;
    let (user, system) = slot.cpu_time().ok_or("no cpu.stat")?;
    let used = user + system;
    // A tenth of three seconds, and an overrun of a period at each end.
    holds((100_000..900_000).contains(&used), || {
        format!("{used} µs in 3 s")
    })
}

fn kill(slot: &mut CgroupSlot) -> Outcome {
    let entry = slot
        .prepare(&Limits::default(), &HelperPids::default())
        .map_err(|errno| errno.to_string())?;
    let script = "trap '' TERM; for i in 1 2 3 4; do setsid setsid sleep 1000 & done; sleep 1000";
    let child = start(&entry, script)?;
    let status = clear(slot, &child)?;
    let killed = status == WaitStatus::Signal(Signal::KILL);
    let members = wait_empty(slot);
    holds(killed && members.is_empty(), || {
        format!("{status:?}, left: {members:?}")
    })
}

/// The kernel removes killed processes asynchronously.
fn wait_empty(slot: &CgroupSlot) -> Vec<i32> {
    let members = slot.members();
    for pid in &members {
        let Some(pid) = rustix::process::Pid::from_raw(*pid) else {
            continue;
        };
        let flags = rustix::process::PidfdFlags::empty();
        if let Ok(pidfd) = rustix::process::pidfd_open(pid, flags) {
            let _late = until(pidfd.as_fd(), PollFlags::IN);
        }
    }
    while matches!(
        ostler_sandbox::spawn::wait::reap(-1),
        ostler_sandbox::spawn::wait::ReapOutcome::Reaped(_)
    ) {}
    slot.members()
}

fn freeze(slot: &mut CgroupSlot) -> Outcome {
    let entry = slot
        .prepare(&Limits::default(), &HelperPids::default())
        .map_err(|errno| errno.to_string())?;
    let child = start(&entry, "while :; do :; done")?;
    let frozen = slot.freeze(true);
    let before = slot.cpu_time();
    // Something that takes time elsewhere.
    let _other = std::process::Command::new("/bin/sh")
        .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
        .status();
    let after = slot.cpu_time();
    let thawed = slot.freeze(false);
    let status = clear(slot, &child)?;
    let still = frozen == FreezeOutcome::Done && thawed == FreezeOutcome::Done && before == after;
    holds(still, || {
        format!("{frozen:?}, {before:?} then {after:?}, {thawed:?}, {status:?}")
    })
}

fn reuse(subtree: &CgroupRoot) -> Outcome {
    let mut slot = slot(subtree, 0);
    memory(&mut slot)?;
    slot.kill();
    let free = limited(&mut slot, Limits::default(), "exit 0")?;
    let hits = slot.take_reached_limits();
    pids(&mut slot)?;
    let again = limited(&mut slot, MEMORY, "exit 0")?;
    slot.remove();
    let fine = free == WaitStatus::Code(0) && again == WaitStatus::Code(0) && hits.is_empty();
    holds(fine, || format!("{free:?}, {hits:?}, {again:?}"))
}
