//! Commands that end by themselves: their input, output and environment.

use ostler_backend::{Backend, ControlCommand, LaunchIo, LeaderOutcome};
use ostler_model::ByteString;

use crate::support::{BackendFixture, TestCase, argv, sh, wait_exit, wait_output, wait_started};

pub(crate) const CASES: &[TestCase] = &[
    ("output_and_errors_are_kept_apart", output_and_errors),
    ("arguments_arrive_verbatim", verbatim),
    ("the_child_sees_three_descriptors_only", three_descriptors),
    ("the_signal_state_is_clean", clean_signals),
    ("input_given_and_closed", given_input),
    ("a_large_input_is_given_whole", large_input),
    ("input_open_until_closed", open_input),
    ("input_nobody_reads_is_not_taken", unread_input),
    ("a_plan_larger_than_a_packet", large_plan),
    ("births_that_fail_say_why", failed_births),
    ("a_terminal_of_its_own", terminal),
    ("three_hundred_at_once", three_hundred),
    ("without_a_keeper", without_keeper),
    ("the_next_attempt_goes_on", next_attempt),
    ("shims_are_used_again", recycled),
];

fn output_and_errors() {
    let fixture = BackendFixture::new();
    let done = fixture.sh("echo out; echo err >&2; exit 3");
    assert_eq!(
        (done.out().as_str(), done.err().as_str()),
        ("out\n", "err\n")
    );
    assert_eq!(done.code(), Some(3));
    assert_eq!(done.record.output_end, 8);
    assert!(done.record.usage.max_rss_bytes > 0);
    assert!(done.record.ended_at >= done.record.started_at);
}

fn verbatim() {
    let fixture = BackendFixture::new();
    let words = [
        "/usr/bin/printf",
        "%s|",
        "$(id)",
        "; rm -rf",
        "a b",
        "",
        "\n",
        "*",
    ];
    assert_eq!(fixture.run(argv(&words)).out(), "$(id)|; rm -rf|a b||\n|*|");
    let mut plan = argv(&["/usr/bin/printf", "%s"]);
    plan.argv.push(ByteString::from(&b"\xff\xfe"[..]));
    let done = fixture.run(plan);
    let bytes = crate::support::output(&done.dir, ostler_model::StreamName::Stdout);
    assert_eq!(bytes, b"\xff\xfe");
}

fn three_descriptors() {
    let fixture = BackendFixture::new();
    let done = fixture.sh("for n in $(seq 0 99); do [ -e /proc/$$/fd/$n ] && echo $n; done");
    assert_eq!(done.out(), "0\n1\n2\n");
}

fn clean_signals() {
    let fixture = BackendFixture::new();
    let done = fixture.run(argv(&["/bin/cat", "/proc/self/status"]));
    let signals = done.out();
    let signals: Vec<&str> = signals
        .lines()
        .filter(|line| line.starts_with("Sig"))
        .collect();
    assert_eq!(signals.len(), 5);
    for line in signals.into_iter().filter(|line| !line.starts_with("SigQ")) {
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
    let done = fixture.sh("echo $(( $(ps -o pgid= -p $$) == $$ )) $OSTLER_EXECUTION");
    let id = done
        .dir
        .file_name()
        .and_then(|name| name.to_str())
        .expect("named")
        .to_owned();
    assert_eq!(done.out(), format!("1 {id}\n"));
}

fn given_input() {
    let fixture = BackendFixture::new();
    let mut plan = argv(&["/bin/cat"]);
    plan.io = LaunchIo::Bytes(b"one\ntwo".to_vec());
    let done = fixture.run(plan);
    assert_eq!((done.out().as_str(), done.code()), ("one\ntwo", Some(0)));
}

fn large_input() {
    let fixture = BackendFixture::new();
    let mut plan = argv(&["/usr/bin/wc", "-c"]);
    plan.io = LaunchIo::Bytes(vec![b'x'; 5_000_000]);
    assert_eq!(fixture.run(plan).out(), "5000000\n");
}

fn open_input() {
    let fixture = BackendFixture::new();
    let mut plan = argv(&["/bin/cat"]);
    plan.io = LaunchIo::Piped;
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        handle
            .control
            .send(ControlCommand::Input(b"hello\n".to_vec()))
            .await
            .expect("sent");
        wait_output(&mut handle, &dir, "hello").await;
        handle
            .control
            .send(ControlCommand::CloseInput)
            .await
            .expect("sent");
        let record = wait_exit(handle).await;
        assert_eq!(record.output_end, 6);
    });
}

fn unread_input() {
    let fixture = BackendFixture::new();
    let mut plan = sh("exec sleep 300");
    plan.io = LaunchIo::Piped;
    plan.report_start = true;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        let mut taken = Vec::new();
        for _ in 0..3 {
            handle
                .control
                .send(ControlCommand::Input(vec![b'x'; 48 * 1024]))
                .await
                .expect("sent");
            let len = crate::support::next_event(&mut handle, |report| match report {
                ostler_backend::ProcessEvent::InputAccepted { len } => Some(*len),
                _ => None,
            });
            taken.push(len.await);
        }
        assert_eq!(
            taken.iter().sum::<u64>(),
            64 * 1024,
            "a pipe full: {taken:?}"
        );
        let grace = std::time::Duration::ZERO;
        handle
            .control
            .send(ControlCommand::Stop { grace })
            .await
            .expect("sent");
        wait_exit(handle).await;
    });
}

fn large_plan() {
    let fixture = BackendFixture::new();
    let mut plan = sh("printf %s \"$BIG\" | wc -c");
    let long = "x".repeat(100_000);
    plan.env
        .push((ByteString::from("BIG"), ByteString::from(long)));
    assert_eq!(fixture.run(plan).out().trim(), "100000");
}

fn failed_births() {
    let fixture = BackendFixture::new();
    let scratch = fixture.state.path().join("scratch");
    std::fs::create_dir(&scratch).expect("made");
    let file = |name: &str, bytes: &[u8], mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = scratch.join(name);
        std::fs::write(&path, bytes).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        path.to_str().expect("text").to_owned()
    };
    let not_executable = file("data", b"#!/bin/sh\n", 0o644);
    let no_format = file("garbage", b"\x00\x01garbage", 0o755);
    let busy = file("busy", &std::fs::read("/bin/true").expect("read"), 0o755);
    let _writer = std::fs::OpenOptions::new()
        .append(true)
        .open(&busy)
        .expect("opened");
    for (program, cwd, step, errno) in [
        ("/does/not/exist", "/", "exec", libc::ENOENT),
        (not_executable.as_str(), "/", "exec", libc::EACCES),
        (no_format.as_str(), "/", "exec", libc::ENOEXEC),
        (busy.as_str(), "/", "exec", libc::ETXTBSY),
        ("/bin/true", "/does/not/exist", "chdir", libc::ENOENT),
        ("/bin/true", "/etc/passwd", "chdir", libc::ENOTDIR),
    ] {
        let mut plan = argv(&[program]);
        plan.cwd = ByteString::from(cwd);
        let done = fixture.run(plan);
        let LeaderOutcome::SpawnFailed {
            step: at,
            errno: number,
            message,
        } = &done.record.outcome
        else {
            panic!("{program} ran");
        };
        assert_eq!((at.as_str(), *number), (step, Some(errno)), "{message}");
        assert!(
            message.contains(if step == "exec" { program } else { cwd }),
            "{message}"
        );
        assert!(done.dir.join("exit").exists());
    }
    let mut plan = argv(&["/bin/echo"]);
    plan.argv.push(ByteString::from("x".repeat(10_000_000)));
    let done = fixture.run(plan);
    let too_big = Some(libc::E2BIG);
    assert!(
        matches!(&done.record.outcome, LeaderOutcome::SpawnFailed { errno, .. } if *errno == too_big)
    );
}

fn terminal() {
    let fixture = BackendFixture::new();
    let mut plan = sh("tty; stty size; read line; echo got:$line; stty size");
    plan.io = LaunchIo::Pty(ostler_model::TermSize {
        cols: 100,
        rows: 30,
    });
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        handle
            .control
            .send(ControlCommand::Watch(true))
            .await
            .expect("sent");
        let seen = |text: &'static str| {
            let dir = dir.clone();
            move |_: &ostler_backend::ProcessEvent| {
                let so_far = crate::support::output(&dir, ostler_model::StreamName::Pty);
                String::from_utf8_lossy(&so_far)
                    .contains(text)
                    .then_some(())
            }
        };
        crate::support::next_event(&mut handle, seen("30 100")).await;
        let size = ostler_model::TermSize { cols: 80, rows: 24 };
        handle
            .control
            .send(ControlCommand::Resize(size))
            .await
            .expect("sent");
        handle
            .control
            .send(ControlCommand::Input(b"abc\n".to_vec()))
            .await
            .expect("sent");
        wait_exit(handle).await;
    });
    let text = crate::support::output(&dir, ostler_model::StreamName::Pty);
    let text = String::from_utf8_lossy(&text);
    assert!(text.starts_with("/dev/pts/"), "{text}");
    assert!(text.contains("got:abc\r\n24 80\r\n"), "{text}");
}

fn three_hundred() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut handles = tokio::task::JoinSet::new();
        for number in 0..300 {
            let plan = sh(&format!("echo {number}; exit {}", number % 7));
            let dir = fixture.dir(plan.id);
            let handle = fixture.backend.spawn(plan).await.expect("it spawns");
            handles.spawn(async move { (number, dir, wait_exit(handle).await) });
        }
        for (number, dir, record) in handles.join_all().await {
            let done = crate::support::FinishedRun { dir, record };
            let outcome = &done.record.outcome;
            assert_eq!(done.code(), Some(number % 7), "{outcome:?}");
            assert_eq!(done.out(), format!("{number}\n"));
        }
    });
}

fn without_keeper() {
    let fixture = BackendFixture::with(ostler_backend_local::ZygoteConfig::InProcess);
    let missing = fixture.backend.capabilities().missing;
    assert!(
        missing
            .iter()
            .any(|missing| missing.ability == ostler_model::Capability::Durable)
    );
    for number in 0..5 {
        let done = fixture.sh(&format!("echo {number}; exit {number}"));
        assert_eq!(
            (done.out(), done.code()),
            (format!("{number}\n"), Some(number))
        );
    }
    let done = fixture.sh("echo *; sleep 300 & setsid sleep 300 >/dev/null 2>&1 & exit 1");
    assert_eq!((done.code(), done.record.leftovers), (Some(1), 2));
}

fn next_attempt() {
    let fixture = BackendFixture::new();
    let first = sh("echo first; exit 1");
    let mut second = sh("echo second");
    second.id = first.id;
    second.attempt = 2;
    assert_eq!(fixture.run(first).record.attempt, 1);
    let done = fixture.run(second);
    assert_eq!(
        (done.record.attempt, done.out().as_str()),
        (2, "first\nsecond\n")
    );
    assert_eq!(done.record.output_end, 13);
}

fn recycled() {
    let fixture = BackendFixture::new();
    let mut shims: Vec<String> = (0..40).map(|_| fixture.sh("echo $PPID").out()).collect();
    shims.sort();
    shims.dedup();
    assert!(
        shims.len() <= 4,
        "no shim was forked beside the warm ones: {shims:?}"
    );
}
