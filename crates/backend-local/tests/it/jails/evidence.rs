//! What is visible of a jail from outside.

use super::*;

pub(super) async fn look(jailed: &JailFixture, id: ExecutionId) -> ostler_model::TreeSnapshot {
    let all = SnapshotRequest {
        disk: true,
        listeners: true,
        unix: false,
        foreground: true,
    };
    loop {
        if let Ok(seen) = jailed.fixture.backend.snapshot(id, all).await {
            return seen;
        }
    }
}

pub(super) fn observed() {
    const SERVER: &str = "import socket,sys\ns=socket.socket()\ns.bind(('127.0.0.1',8080))\n\
        s.listen()\nprint('up',flush=True)\nsys.stdin.read()";
    each(|jailed| {
        let mut plan = jailed.plan(&["/bin/sh", "-c", "python3 -c \"$1\"; true", "sh", SERVER]);
        plan.io = LaunchIo::Piped;
        let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "up").await;
            let seen = look(jailed, id).await;
            let names: Vec<&str> = seen.members.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, ["sh", "python3"]);
            let [listener] = seen.listeners.as_slice() else {
                panic!("one listener, not {:?}", seen.listeners);
            };
            assert_eq!(listener.address.to_string(), "127.0.0.1:8080");
            handle
                .control
                .send(ControlCommand::CloseInput)
                .await
                .expect("sent");
            wait_exit(handle).await;
        });
    });
}

pub(super) fn prompted() {
    each(|jailed| {
        let mut plan = jailed.sh("stty -echo; read line; echo $line");
        plan.io = LaunchIo::Pty(TermSize { cols: 80, rows: 24 });
        let on_terminal = plan.id;
        let mut piped = jailed.sh("cat");
        piped.io = LaunchIo::Piped;
        let on_pipe = piped.id;
        jailed.fixture.runtime.block_on(async {
            let first = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            let second = jailed
                .fixture
                .backend
                .spawn(piped)
                .await
                .expect("it spawns");
            let reads = async |id, echo| {
                loop {
                    let seen = look(jailed, id).await.foreground;
                    if seen.is_some_and(|it| it.reads == Some(0) && it.echo == echo) {
                        return;
                    }
                }
            };
            tokio::time::timeout(LONG, reads(on_terminal, Some(false)))
                .await
                .expect("seen");
            tokio::time::timeout(LONG, reads(on_pipe, None))
                .await
                .expect("seen");
            for handle in [first, second] {
                stop(&handle).await;
                wait_exit(handle).await;
            }
        });
    });
}

pub(super) fn grown() {
    each(|jailed| {
        let mut plan = jailed.sh("head -c 3000000 /dev/urandom > new; echo done; sleep 300");
        plan.limits.disk_bytes = Some(1 << 20);
        std::fs::write(jailed.workspace.path().join("old"), vec![1; 1 << 20]).expect("written");
        let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "done").await;
            let grown = look(jailed, id).await.disk_bytes.expect("known");
            assert!((3_000_000..3_100_000).contains(&grown), "{grown}");
            stop(&handle).await;
            wait_exit(handle).await;
        });
    });
}

pub(super) fn usage() {
    each(|jailed| {
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo over";
        let script = format!("(sh -c '{spin}' | cat) & wait");
        let done = jailed.run(jailed.plan(&["/bin/sh", "-c", &script]));
        assert_spawned(&done);
        let used = done.record.usage;
        assert!(used.user_us + used.system_us > 10_000, "{used:?}");
        assert!(used.max_rss_bytes > 0, "{used:?}");
    });
}

/// Only what goes through its own network counts; there is none outside a jail.
pub(super) fn used() {
    each(|jailed| {
        let mut plan = jailed.sh("echo up; read x");
        plan.io = LaunchIo::Piped;
        let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "up").await;
            let readings = jailed.fixture.backend.usage(&[id]).await;
            let [Some(reading)] = readings.as_slice() else {
                panic!("it runs: {readings:?}");
            };
            assert_eq!(reading.processes, 1);
            assert!(reading.memory_bytes > 0);
            let network = (reading.received_bytes, reading.sent_bytes);
            assert_eq!(network, (Some(0), Some(0)), "nothing but loopback");
            handle
                .control
                .send(ControlCommand::CloseInput)
                .await
                .expect("sent");
            wait_exit(handle).await;
        });
    });
}
