//! Limits within jails, and fork bombs and the like.

use super::*;

pub(super) fn counted() {
    each(|jailed| {
        if !jailed
            .fixture
            .backend
            .capabilities()
            .has(Capability::PidsLimit)
        {
            return;
        }
        let mut plan = jailed.sh("true; sleep 0 & wait; echo enough");
        plan.limits.pids = Some(2);
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert_eq!(done.out(), "enough\n", "{}", done.err());
        assert!(done.record.limits_hit.is_empty());
        let mut plan = jailed.sh("exec echo alone");
        plan.limits.pids = Some(1);
        assert_eq!(jailed.run(plan).out(), "alone\n");
        let mut plan = jailed.plan(&["/bin/bash", "-c", "sleep 1 & sleep 1 & sleep 1 & wait"]);
        plan.limits.pids = Some(2);
        plan.timeouts.wall = Some(Duration::from_millis(500));
        plan.timeouts.grace = Duration::ZERO;
        assert_eq!(jailed.run(plan).record.limits_hit, [LimitKind::Pids]);
    });
}

pub(super) fn fork_bomb() {
    each(|jailed| {
        if !jailed
            .fixture
            .backend
            .capabilities()
            .has(Capability::PidsLimit)
        {
            return;
        }
        let bomb = "bomb() { bomb | bomb & }; bomb; sleep 300";
        let mut plan = jailed.plan(&["/bin/bash", "-c", bomb]);
        plan.limits.pids = Some(64);
        plan.timeouts.wall = Some(Duration::from_millis(500));
        plan.timeouts.grace = Duration::ZERO;
        let id = plan.id;
        let (done, took) = timed(|| jailed.run(plan));
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_eq!(done.record.limits_hit, [LimitKind::Pids]);
        assert!(done.record.survivors.is_empty() && members(id).is_empty());
        assert_eq!(jailed.shell("echo on").out(), "on\n");
    });
}

pub(super) fn memory() {
    each(|jailed| {
        if !jailed
            .fixture
            .backend
            .capabilities()
            .has(Capability::MemoryLimit)
        {
            return;
        }
        let hog = "x = b'x' * (200 << 20); print(len(x))";
        let mut plan = jailed.plan(&["/usr/bin/python3", "-c", hog]);
        plan.limits.memory_bytes = Some(48 << 20);
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert_eq!((done.signal(), done.record.out_of_memory), (Some(9), true));
        assert_eq!(done.record.limits_hit, [LimitKind::Memory]);
        // Private directories are memory, too.
        let mut plan = jailed.sh("head -c 200000000 /dev/zero > /tmp/big; echo $?");
        plan.limits.memory_bytes = Some(48 << 20);
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert_ne!(done.out(), "0\n");
        assert_eq!(jailed.shell("echo on").out(), "on\n");
    });
}

pub(super) fn hogs() {
    each(|jailed| {
        // Descriptors.
        let script = "import os\nopen_ = []\ntry:\n  while True: open_.append(os.open('/dev/null', 0))\n\
            except OSError as e: print(e.errno, len(open_) < 64)";
        let mut plan = jailed.plan(&["/usr/bin/python3", "-c", script]);
        plan.limits.open_files = Some(64);
        assert_eq!(jailed.run(plan).out(), "24 True\n");
        // Files: as many as there is room for, and gone with the jail.
        let script = "import os\nn = 0\ntry:\n  for n in range(100_000):\n    \
            open(f'/dev/shm/{n}', 'w').close()\nexcept OSError as e: print(e.errno)";
        let mut plan = jailed.plan(&["/usr/bin/python3", "-c", script]);
        plan.timeouts.wall = Some(LONG);
        plan.timeouts.grace = Duration::ZERO;
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert!(done.record.survivors.is_empty());
        // One file, to the limit.
        let mut plan = jailed.sh("cat /dev/zero > big");
        plan.limits.file_bytes = Some(64 << 10);
        assert_eq!(jailed.run(plan).record.limits_hit, [LimitKind::FileSize]);
        assert_eq!(jailed.shell("echo on").out(), "on\n");
    });
}
