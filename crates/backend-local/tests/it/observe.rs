//! Inspecting running executions: members, listening sockets, input waiters.

use ostler_backend::{Backend, ControlCommand, LaunchIo};
use ostler_model::snapshot::ForegroundProcess;
use ostler_model::{ExecutionId, SnapshotRequest, TermSize, TreeSnapshot};

use crate::support::{BackendFixture, TestCase, argv, sh, wait_exit, wait_output, wait_started};

pub(crate) const CASES: &[TestCase] = &[
    ("listeners_are_found_with_their_holder", listeners),
    ("a_reader_without_echo_is_seen_waiting", reader),
    ("only_input_of_the_execution_is_waited_for", own_input),
    ("an_ended_tree_has_no_members", ended),
    ("an_unknown_execution_cannot_be_observed", unknown),
    ("what_trees_use_is_read_in_one_pass", usage),
];

const ALL: SnapshotRequest = SnapshotRequest {
    disk: false,
    listeners: true,
    unix: false,
    foreground: true,
};

const SERVER: &str = "import socket,sys\n\
    s=socket.socket()\n\
    s.bind(('127.0.0.1',0))\n\
    s.listen()\n\
    print('port',s.getsockname()[1],flush=True)\n\
    sys.stdin.read()";

/// Takes a snapshot. Right after a spawn its record may not be written yet.
async fn look(fixture: &BackendFixture, id: ExecutionId) -> TreeSnapshot {
    loop {
        if let Ok(seen) = fixture.backend.snapshot(id, ALL).await {
            return seen;
        }
    }
}

fn listeners() {
    let fixture = BackendFixture::new();
    let mut plan = argv(&["/bin/sh", "-c", "python3 -c \"$1\"; true", "sh", SERVER]);
    plan.io = LaunchIo::Piped;
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "\n").await;
        let seen = look(&fixture, id).await;
        let names: Vec<&str> = seen.members.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.first(), Some(&"sh"), "{names:?}");
        assert_eq!(seen.members.len(), 2, "{names:?}");
        assert!(seen.usage.resident_pages > 0);
        let out = crate::support::output(&dir, ostler_model::StreamName::Stdout);
        let out = String::from_utf8_lossy(&out).into_owned();
        let port = out.trim().strip_prefix("port ").expect("a port");
        let [listener] = seen.listeners.as_slice() else {
            panic!("one listener, not {:?}", seen.listeners);
        };
        assert_eq!(listener.address.to_string(), format!("127.0.0.1:{port}"));
        assert_eq!(listener.pid, seen.members[1].pid);
        handle
            .control
            .send(ControlCommand::CloseInput)
            .await
            .expect("sent");
        wait_exit(handle).await;
    });
}

fn reader() {
    let fixture = BackendFixture::new();
    let mut plan = sh("stty -echo; read line");
    plan.io = LaunchIo::Pty(TermSize { cols: 80, rows: 24 });
    let id = plan.id;
    fixture.runtime.block_on(async {
        let handle = fixture.backend.spawn(plan).await.expect("it spawns");
        // Nothing announces that it reads: poll until it does.
        let foreground = loop {
            let seen = look(&fixture, id).await.foreground;
            if let Some(seen) = seen.filter(|it| it.reads.is_some() && it.echo == Some(false)) {
                break seen;
            }
        };
        assert_eq!((foreground.reads, foreground.echo), (Some(0), Some(false)));
        let typed = ControlCommand::Input(b"secret\n".to_vec());
        handle.control.send(typed).await.expect("sent");
        wait_exit(handle).await;
    });
}

fn own_input() {
    let fixture = BackendFixture::new();
    let open = |script: &str| {
        let mut plan = sh(script);
        plan.io = LaunchIo::Piped;
        plan
    };
    // In a wrapper; in a pipeline; polling several descriptors.
    let wrapped = open("cat; true");
    let piped = open("sleep 300 | cat; true");
    let several =
        open("python3 -c 'import os, select; select.select([0, os.pipe()[0]],[],[])'; true");
    let ids = [wrapped.id, piped.id, several.id];
    fixture.runtime.block_on(async {
        let mut handles = Vec::new();
        for plan in [wrapped, piped, several] {
            handles.push(fixture.backend.spawn(plan).await.expect("it spawns"));
        }
        // Nothing announces that they wait: poll until they do.
        let until = async |id, name: &str, good: fn(&ForegroundProcess) -> bool| loop {
            let seen = look(&fixture, id).await;
            let there = seen.members.iter().any(|it| it.name == name);
            let waits = seen.foreground.filter(|it| there && good(it));
            if let Some(found) = waits {
                let member = seen.members.iter().find(|it| it.pid == found.pid);
                break member.map(|it| it.name.clone()).unwrap_or_default();
            }
        };
        let reader = until(ids[0], "cat", |it| it.reads == Some(0) && it.echo.is_none()).await;
        assert_eq!(reader, "cat");
        let nobody = until(ids[1], "cat", |it| it.reads.is_none() && !it.polls).await;
        assert_eq!(nobody, "sh");
        let poller = until(ids[2], "python3", |it| it.reads.is_none() && it.polls).await;
        assert_eq!(poller, "python3");
        for handle in handles {
            let grace = std::time::Duration::ZERO;
            handle
                .control
                .send(ControlCommand::Stop { grace })
                .await
                .expect("sent");
            wait_exit(handle).await;
        }
    });
}

fn ended() {
    let fixture = BackendFixture::new();
    let plan = sh("true");
    let id = plan.id;
    fixture.run(plan);
    let seen = fixture.runtime.block_on(look(&fixture, id));
    assert_eq!(seen, TreeSnapshot::default());
}

fn unknown() {
    let fixture = BackendFixture::new();
    let seen = fixture.backend.snapshot(ExecutionId::mint(), ALL);
    assert!(fixture.runtime.block_on(seen).is_err());
}

/// Both are read at once, one that nobody knows beside them; processor time does not fall when a
/// process that used some has ended.
fn usage() {
    const BUSY: &str =
        "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read x";
    let fixture = BackendFixture::new();
    let mut busy = sh(BUSY);
    busy.io = LaunchIo::Piped;
    let mut idle = sh("echo up; read x");
    idle.io = LaunchIo::Piped;
    let dirs = [fixture.dir(busy.id), fixture.dir(idle.id)];
    let ids = [busy.id, ExecutionId::mint(), idle.id];
    fixture.runtime.block_on(async {
        let mut handles = Vec::new();
        for plan in [busy, idle] {
            handles.push(fixture.backend.spawn(plan).await.expect("it spawns"));
        }
        wait_started(&mut handles[0]).await;
        wait_output(&mut handles[1], &dirs[1], "up").await;
        let before = fixture.backend.usage(&ids).await;
        wait_output(&mut handles[0], &dirs[0], "done").await;
        let after = fixture.backend.usage(&ids).await;
        assert_eq!((before.len(), after.len()), (3, 3));
        assert_eq!((before[1], after[1]), (None, None));
        let (was, is) = (before[0].expect("it runs"), after[0].expect("it runs"));
        assert!(is.cpu_us >= was.cpu_us + 20_000, "{was:?} {is:?}");
        let idle = after[2].expect("it runs");
        assert_eq!(idle.processes, 1);
        assert!(idle.memory_bytes > 0);
        assert!(idle.read_bytes.is_some(), "{idle:?}");
        assert_eq!(idle.received_bytes, None, "it has no network of its own");
        for handle in handles {
            handle
                .control
                .send(ControlCommand::CloseInput)
                .await
                .expect("sent");
            wait_exit(handle).await;
        }
        assert_eq!(fixture.backend.usage(&ids).await, [None, None, None]);
    });
}
