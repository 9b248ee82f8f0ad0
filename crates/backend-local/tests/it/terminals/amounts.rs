//! Large output, large input, many terminals.

use super::*;

pub(super) fn last_words() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        for number in 0..100 {
            for script in [
                format!("printf 'word {number}'"),
                format!("sleep 300 & printf 'word {number}'"),
            ] {
                let mut plan = on_terminal(sh(&script));
                plan.timeouts.grace = Duration::ZERO;
                let session = Session::begin(&fixture, plan).await;
                let done = session.ends().await;
                let text = output(&done.dir, StreamName::Pty);
                assert_eq!(String::from_utf8_lossy(&text), format!("word {number}"));
            }
        }
    });
}

pub(super) fn ten_megabytes() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let script = "stty raw -echo; exec head -c 10000000 /dev/zero";
        let session = Session::begin(&fixture, on_terminal(sh(script))).await;
        let done = session.ends().await;
        assert_eq!(done.record.output_end, 10_000_000);
        assert!(
            output(&done.dir, StreamName::Pty)
                .iter()
                .all(|byte| *byte == 0)
        );
    });
}

pub(super) fn long_line() {
    let fixture = BackendFixture::new();
    let files = tempfile::tempdir().expect("a directory");
    let file = files.path().join("taken");
    let script = format!("stty -echo; echo here; exec cat >'{}'", file.display());
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, on_terminal(sh(&script))).await;
        session.shows("here").await;
        // A complete line of the kernel's length is accepted, and another one after it.
        let line = [vec![b'a'; 4_095], b"\n".to_vec()].concat();
        assert_eq!(session.types(&line).await, 4_096);
        wait_until(|| std::fs::metadata(&file).is_ok_and(|it| it.len() == 4_096));
        assert_eq!(session.types(&line).await, 4_096);
        wait_until(|| std::fs::metadata(&file).is_ok_and(|it| it.len() == 8_192));
        // A longer one is handed over in parts, nothing of it is dropped, and nothing is added.
        let long = vec![b'b'; 60_000];
        let mut at = 0;
        while at < long.len() {
            at += usize::try_from(session.types(&long[at..]).await).expect("small");
        }
        assert_eq!(session.types(b"\nc").await, 2);
        session.send(ControlCommand::CloseInput).await;
        session.ends().await;
    });
    let expected = [
        vec![b'a'; 4_095],
        b"\n".to_vec(),
        vec![b'a'; 4_095],
        b"\n".to_vec(),
        vec![b'b'; 60_000],
        b"\nc".to_vec(),
    ];
    assert!(std::fs::read(&file).expect("written") == expected.concat());
}

pub(super) fn many_keys() {
    const TOTAL: usize = 10_000_000;
    let fixture = BackendFixture::new();
    let files = tempfile::tempdir().expect("a directory");
    let file = files.path().join("taken");
    let script = format!(
        "stty raw -echo; echo here; exec head -c {TOTAL} >'{}'",
        file.display()
    );
    let byte = |at: usize| (at * 7 + at / 251).to_le_bytes()[0];
    let sent: Vec<u8> = (0..TOTAL).map(byte).collect();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, on_terminal(sh(&script))).await;
        session.shows("here").await;
        let mut at = 0;
        while at < TOTAL {
            let chunk = &sent[at..TOTAL.min(at + 64 * 1024)];
            let taken = session.types(chunk).await;
            at += usize::try_from(taken).expect("small");
        }
        session.ends().await;
    });
    assert!(std::fs::read(&file).expect("written") == sent);
}

pub(super) fn never_reads() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let script = "stty raw -echo; echo here; exec sleep 300";
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let taken = session.types(&vec![b'x'; 64 * 1024]).await;
        assert!(taken > 0 && taken < 64 * 1024, "{taken}");
        session.stopped(GRACE).await;
    });
}

pub(super) fn end_of_input() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let plan = on_terminal(sh("stty -echo; echo here; cat; echo over"));
        let mut session = Session::begin(&fixture, plan).await;
        session.shows("here").await;
        assert_eq!(session.types(b"no newline").await, 10);
        session.send(ControlCommand::CloseInput).await;
        let done = session.ends().await;
        let text = String::from_utf8_lossy(&output(&done.dir, StreamName::Pty)).into_owned();
        assert!(text.ends_with("no newlineover\r\n"), "{text:?}");
    });
}

pub(super) fn sixty() {
    many_at_once(60);
}

pub(super) fn three_hundred() {
    many_at_once(300);
}

fn many_at_once(count: usize) {
    let fixture = BackendFixture::new();
    let sessions = fixture.runtime.block_on(async {
        let mut sessions = Vec::new();
        for number in 0..count {
            let script = format!("echo here {number}.; exec cat");
            let mut session = Session::begin(&fixture, on_terminal(sh(&script))).await;
            session.shows(&format!("here {number}.")).await;
            sessions.push(session);
        }
        sessions
    });
    let shims: Vec<u32> = sessions
        .iter()
        .map(|session| shim_of(members(session.id)[0]))
        .collect();
    fixture.runtime.block_on(async {
        let mut ends = tokio::task::JoinSet::new();
        for session in sessions {
            session.send(ControlCommand::Stop { grace: GRACE }).await;
            ends.spawn(session.ends());
        }
        for done in ends.join_all().await {
            assert_eq!(done.signal(), Some(libc::SIGHUP));
        }
    });
    for shim in shims {
        assert_eq!(zombies_of(shim), 0);
        let pid = i32::try_from(shim).expect("a pid");
        // It waits for the next plan, or was not needed any more and has exited.
        assert!(is_alive(pid) || !std::path::Path::new(&format!("/proc/{shim}/exe")).exists());
    }
}
