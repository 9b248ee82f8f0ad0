//! Ends in jails: leftovers, ignored signals, timeouts.

use super::*;

const DAEMONS: &str = "setsid sleep 300 & nohup sleep 301 >/dev/null 2>&1 & \
    (setsid sh -c 'sleep 302 & sleep 303' </dev/null >/dev/null 2>&1 &) ; echo up";

pub(super) fn leftovers() {
    each(|jailed| {
        let plan = jailed.sh(DAEMONS);
        let id = plan.id;
        let (done, took) = timed(|| jailed.run(plan));
        assert_spawned(&done);
        assert_eq!((done.code(), done.out().as_str()), (Some(0), "up\n"));
        assert!(done.record.leftovers >= 4, "{:?}", done.record);
        assert!(done.record.survivors.is_empty());
        assert!(members(id).is_empty());
        assert!(took < Duration::from_secs(10), "{took:?}");
        let done = jailed.shell("sleep 0.02 & true");
        assert_eq!((done.code(), done.record.leftovers), (Some(0), 0));
    });
}

pub(super) fn kept() {
    each(|jailed| {
        let mut plan = jailed.sh("setsid sleep 300 & echo up");
        plan.orphan_policy = OrphanPolicy::Keep;
        let id = plan.id;
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            next_event(&mut handle, |report| {
                matches!(report, ProcessEvent::Detached { .. }).then_some(())
            })
            .await;
            assert_eq!(members(id).len(), 1);
            stop(&handle).await;
            let record = wait_exit(handle).await;
            assert!(record.survivors.is_empty() && record.leftovers == 0);
        });
        assert!(members(id).is_empty());
        let mut plan = jailed.sh("setsid sleep 0.4 & exit 0");
        plan.orphan_policy = OrphanPolicy::Keep;
        let done = jailed.run(plan);
        assert_eq!((done.code(), done.record.leftovers), (Some(0), 0));
        assert!(done.record.lived_ms >= 400, "{}", done.record.lived_ms);
        let mut plan = jailed.sh("setsid sleep 300 & exit 9");
        plan.orphan_policy = OrphanPolicy::Keep;
        let done = jailed.run(plan);
        assert_eq!((done.code(), done.record.leftovers), (Some(9), 1));
    });
}

pub(super) fn ladder() {
    each(|jailed| {
        let script = "trap '' TERM HUP; (trap '' TERM; setsid sleep 300) & echo up; \
            while :; do sleep 0.05; done";
        let mut plan = jailed.sh(script);
        plan.timeouts.grace = Duration::from_millis(200);
        let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
        let record = jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "up").await;
            let grace = Duration::from_millis(100);
            handle
                .control
                .send(ControlCommand::Stop { grace })
                .await
                .expect("sent");
            wait_exit(handle).await
        });
        let LeaderOutcome::Ended {
            status,
            kill_reason: ladder,
        } = record.outcome
        else {
            panic!("{:?}", record.outcome);
        };
        assert_eq!(ladder, Some(KillReason::Requested), "{status:?}");
        assert!(record.survivors.is_empty() && members(id).is_empty());
        // A process that handles signals receives SIGTERM first.
        let mut plan =
            jailed.sh("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.02; done");
        plan.timeouts.grace = LONG;
        let dir = jailed.fixture.dir(plan.id);
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "up").await;
            handle
                .control
                .send(ControlCommand::Stop { grace: LONG })
                .await
                .expect("sent");
            wait_exit(handle).await;
        });
        let actual = output(&dir, StreamName::Stdout);
        assert!(String::from_utf8_lossy(&actual).contains("bye"));
    });
}

pub(super) fn timeouts() {
    each(|jailed| {
        let mut plan = jailed.sh("(setsid sleep 300) & sleep 300");
        plan.timeouts.wall = Some(Duration::from_millis(200));
        plan.timeouts.grace = Duration::from_millis(100);
        let id = plan.id;
        let done = jailed.run(plan);
        let LeaderOutcome::Ended {
            kill_reason: ladder,
            ..
        } = done.record.outcome
        else {
            panic!("{:?}", done.record.outcome);
        };
        assert_eq!(ladder, Some(KillReason::Timeout(TimeoutKind::Wall)));
        assert!(done.record.survivors.is_empty() && members(id).is_empty());
    });
}
