//! An egress proxy that is killed while its command runs: the command runs on, and is told of.

use ostler_backend::RecoveryOutcome;
use ostler_model::{ExitRecord, MissingCapability};
use rustix::process::Signal;

use super::*;
use crate::support::wait_until;

/// A command behind an egress proxy that ends when it gets a line; none where there are no proxies.
fn plan_behind_proxy(jailed: &JailFixture) -> Option<LaunchPlan> {
    if !jailed.fixture.backend.capabilities().has(Capability::Gate) {
        return None;
    }
    // What remains after the leader waits for the line: an end of a helper is none of theirs.
    let mut plan = jailed.sh("exec 3<&0; echo up; (read line <&3; echo got $line) &");
    plan.io = LaunchIo::Piped;
    plan.orphan_policy = OrphanPolicy::Keep;
    let sandbox = plan.sandbox.as_mut().expect("a sandbox");
    let rule = "allowed.example".parse().expect("a host");
    sandbox.network = NetworkAccess::AllowList { hosts: vec![rule] };
    Some(plan)
}

fn kill_proxy(dir: &Path) {
    let found = egress_proxies(shim_of(dir));
    let [proxy] = found.as_slice() else {
        panic!("one proxy, not {found:?}");
    };
    kill(*proxy, Signal::KILL);
}

fn assert_lost(lost: &MissingCapability) {
    assert_eq!(lost.ability, Capability::Gate);
    assert!(lost.reason.contains("ended by SIGKILL"), "{lost:?}");
}

fn is_detached(event: &ProcessEvent) -> Option<()> {
    matches!(event, ProcessEvent::Detached { .. }).then_some(())
}

async fn next_lost(handle: &mut SpawnHandle) -> MissingCapability {
    let lost = next_event(handle, |event| match event {
        ProcessEvent::Degraded { lost } => Some(lost.clone()),
        ProcessEvent::Exited { .. } => panic!("it ended without a report"),
        _ => None,
    });
    lost.await
}

pub(super) fn reported() {
    let Some(jailed) = JailFixture::with(this_executable()) else {
        return;
    };
    let Some(plan) = plan_behind_proxy(&jailed) else {
        return;
    };
    let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
    jailed.fixture.runtime.block_on(async {
        let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
        next_event(&mut handle, is_detached).await;
        kill_proxy(&dir);
        assert_lost(&next_lost(&mut handle).await);
        jailed.fixture.backend.close().await;
        let again = ostler_backend_local::LocalBackend::open(
            jailed.fixture.state.path(),
            this_executable(),
        );
        let backend = again.await.expect("opens again");
        let RecoveryOutcome::Running { mut handle, .. } = backend.recover(id).await else {
            panic!("it runs");
        };
        assert_lost(&next_lost(&mut handle).await);
        let typed = ControlCommand::Input(b"later\n".to_vec());
        handle.control.send(typed).await.expect("sent");
        let record = wait_exit(handle).await;
        let LeaderOutcome::Ended { status, .. } = record.outcome else {
            panic!("it ran: {record:?}");
        };
        assert_eq!(status.to_string(), "exit code 0");
        assert_eq!((record.leftovers, record.survivors.len()), (0, 0));
        let actual = output(&dir, StreamName::Stdout);
        assert_eq!(String::from_utf8_lossy(&actual), "up\ngot later\n");
        backend.close().await;
    });
}

pub(super) fn recorded() {
    let Some(jailed) = JailFixture::with(this_executable()) else {
        return;
    };
    let Some(plan) = plan_behind_proxy(&jailed) else {
        return;
    };
    let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
    jailed.fixture.runtime.block_on(async {
        let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
        next_event(&mut handle, is_detached).await;
        jailed.fixture.backend.close().await;
    });
    let shim = shim_of(&dir);
    kill_proxy(&dir);
    wait_until(|| egress_proxies(shim).is_empty());
    for member in members(id) {
        kill(member, Signal::TERM);
    }
    wait_until(|| dir.join("exit").exists());
    let text = std::fs::read(dir.join("exit")).expect("readable");
    let record: ExitRecord = serde_json::from_slice(&text).expect("a record");
    let [lost] = record.lost_capabilities.as_slice() else {
        panic!("one, not {:?}", record.lost_capabilities);
    };
    assert_lost(lost);
}
