//! What sessions do (REQ-001 to REQ-013 and REQ-005A).

use ostler::journal::LineQuery;
use ostler::model::{ErrorCode, Signal, TermSize, TerminationCause};
use ostler::{
    CleanOutcome, Error, ListFilter, RetentionRequest, StopRequest, TERMINAL_VIEW_BYTES,
    TerminalEvent, TerminalInput, TerminalPageQuery, WaitEnd, WaitFor,
};
use std::time::Duration;

use crate::engine_fixture::{
    EngineFixture, PATIENCE, exists, key, members, node, request, until, var,
};
use ostler::terminal::InputPiece;

/// A spawn returns an id that is not empty, and the status is `running`.
pub(crate) async fn req_001_spawn_answers_an_id_and_the_session_runs(fixture: EngineFixture) {
    let id = fixture
        .start(&node("setInterval(() => {}, 1000)", "exec cat"))
        .await;
    assert!(!id.is_empty());
    assert_eq!(fixture.status(&id), "running");
    fixture.close().await;
}

/// Columns and rows set the size before any resize; variables replace or extend the environment.
pub(crate) async fn req_002_spawn_takes_arguments_directory_environment_and_size(
    fixture: EngineFixture,
) {
    let script = r#"stty size; pwd; echo "$0-$1 $LANG $ADDED $HOME""#;
    let words = ["sh", "-c", script, "zero", "one"];
    let default = fixture.start(&words).await;
    fixture.ended(&default).await;
    let said = fixture.output(&default).await;
    assert_eq!(said, "24 80\r\n/tmp\r\nzero-one C.UTF-8  /nonexistent\r\n");

    let mut requested = request(&words);
    requested.options.pty = Some(TermSize {
        cols: 132,
        rows: 43,
    });
    requested.cwd = "/usr".into();
    // One variable replaced, one added.
    requested.options.set_env = vec![var("LANG", "C"), var("ADDED", "new")];
    let other = fixture.started(requested).await;
    fixture.ended(&other).await;
    let said = fixture.output(&other).await;
    assert_eq!(said, "43 132\r\n/usr\r\nzero-one C new /nonexistent\r\n");

    let mut replaced = request(&words);
    replaced.base_env = vec![var("PATH", "/usr/bin:/bin")];
    let third = fixture.started(replaced).await;
    fixture.ended(&third).await;
    let said = fixture.output(&third).await;
    assert_eq!(said, "24 80\r\n/tmp\r\nzero-one   \r\n");
    fixture.close().await;
}

/// Output of a program that keeps printing can be read, and grows, while it runs.
pub(crate) async fn req_003_output_is_seen_while_the_program_prints(fixture: EngineFixture) {
    let script = "let n = 0; setInterval(() => console.log(`tick ${n++}`), 10)";
    let instead = "n=0; while :; do echo tick $n; n=$((n+1)); sleep 0.01; done";
    let id = fixture.start(&node(script, instead)).await;
    let mut lengths = vec![0];
    for round in 0..3 {
        fixture.seen(&id, &format!("tick {round}\r\n")).await;
        assert_eq!(fixture.status(&id), "running");
        let length = fixture.output(&id).await.len();
        assert!(length > 0 && length >= lengths[lengths.len() - 1]);
        let from = fixture.info(&id).cursor();
        let more = WaitFor::OutputAfter(from);
        let wait = fixture.engine.wait(&fixture.me, &id, &more, Some(PATIENCE));
        assert_eq!(wait.await.expect("it is known").end, WaitEnd::Output);
        lengths.push(fixture.output(&id).await.len());
    }
    assert!(
        lengths.windows(2).all(|pair| pair[0] < pair[1]),
        "{lengths:?}"
    );
    fixture.close().await;
}

/// Reading the output of an unknown session fails with the code `SESSION_NOT_FOUND`.
pub(crate) async fn req_004_output_is_had_whole_and_an_unknown_session_is_an_error(
    fixture: EngineFixture,
) {
    let id = fixture
        .start(&["sh", "-c", "echo one; echo two; exit 3"])
        .await;
    fixture.ended(&id).await;
    assert_eq!(fixture.output(&id).await, "one\r\ntwo\r\n");

    let unknown = "019b0000-0000-7000-8000-000000000000";
    let read = fixture
        .engine
        .read_terminal(&fixture.me, unknown, TerminalPageQuery::default());
    let error = read.await.expect_err("nobody knows it");
    assert!(matches!(error, Error::SessionNotFound), "{error:?}");
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
    let name = error.code().info().name;
    assert_eq!(name.to_uppercase(), "SESSION_NOT_FOUND");
    fixture.close().await;
}

/// Output beyond the limit: the view is no longer than the limit and ends with the newest output.
pub(crate) async fn req_005_the_view_keeps_the_newest_megabyte(fixture: EngineFixture) {
    let script = "seq 1 400000; echo the newest";
    let id = fixture.start(&["sh", "-c", script]).await;
    let length = fixture.ended(&id).await.output_end;
    assert!(length > 2 * TERMINAL_VIEW_BYTES, "{length}");
    let whole = TerminalPageQuery::default();
    let page = fixture.engine.read_terminal(&fixture.me, &id, whole).await;
    let page = page.expect("readable");
    assert!(page.data.len() as u64 <= TERMINAL_VIEW_BYTES);
    assert!(page.data.ends_with(b"400000\r\nthe newest\r\n"));
    assert_eq!(page.end_offset, length);
    // The journal keeps what is no longer in the view.
    let journal = fixture.engine.journal(&fixture.me, &id).expect("known");
    let lines = journal
        .lines(&LineQuery::default())
        .expect("readable")
        .lines;
    assert!(lines[0].bytes.starts_with(b"1"));
    fixture.close().await;
}

/// A read with offset and limit returns the next offset as the cursor of the next read; an offset
/// before the first kept byte is moved to it, and `truncated` is set.
pub(crate) async fn req_005a_output_is_read_by_offset_and_limit(fixture: EngineFixture) {
    let id = fixture
        .start(&["sh", "-c", "seq 1 1000; printf 进程管理器"])
        .await;
    fixture.ended(&id).await;
    let whole = fixture.output(&id).await;
    let (mut read, mut offset) = (Vec::new(), 0);
    loop {
        let query = TerminalPageQuery {
            offset: Some(offset),
            limit: Some(100),
        };
        let page = fixture.engine.read_terminal(&fixture.me, &id, query).await;
        let page = page.expect("readable");
        assert!(page.data.len() <= 100 && !page.truncated);
        assert_eq!(page.offset, offset);
        // No character is cut.
        assert!(std::str::from_utf8(&page.data).is_ok());
        if page.data.is_empty() {
            assert_eq!(page.next_offset, page.end_offset);
            break;
        }
        read.extend(page.data);
        offset = page.next_offset;
    }
    assert_eq!(String::from_utf8(read).expect("text"), whole);

    let much = fixture.start(&["sh", "-c", "seq 1 300000"]).await;
    fixture.ended(&much).await;
    let query = TerminalPageQuery {
        offset: Some(5),
        limit: Some(64),
    };
    let page = fixture
        .engine
        .read_terminal(&fixture.me, &much, query)
        .await;
    let page = page.expect("readable");
    assert!(page.truncated && page.start_offset > 5);
    assert_eq!(page.offset, page.start_offset);
    assert_eq!(page.next_offset, page.offset + page.data.len() as u64);
    fixture.close().await;
}

/// Text written to an interactive program has a visible effect; a write to an ended session is a
/// recognizable error.
pub(crate) async fn req_006_text_and_keys_reach_the_program(fixture: EngineFixture) {
    let id = fixture.shell().await;
    fixture.line(&id, "echo $((20 + 22))").await;
    fixture.seen(&id, "\r42\r\n").await;

    // Keys as a program sees them, until ctrl-d on an empty line ends its input.
    fixture.line(&id, "stty -echo; cat -v; echo over").await;
    fixture.seen(&id, "cat -v; echo over\r\n").await;
    for name in ["up", "home", "f5", "tab", "escape", "alt-x"] {
        fixture.keys(&id, vec![key(name)]).await;
    }
    fixture
        .keys(
            &id,
            vec![InputPiece::Raw(b"\x02raw".to_vec()), key("enter")],
        )
        .await;
    let seen = fixture.seen(&id, "raw\r\n").await;
    for name in ["^[[A", "^[[H", "^[[15~", "\t", "^[x", "^Braw"] {
        assert!(seen.contains(name), "no {name:?} in {seen:?}");
    }
    fixture.keys(&id, vec![key("ctrl-d")]).await;
    fixture.seen(&id, "over\r\n").await;

    fixture.line(&id, "exit 4").await;
    let ending = fixture.ended(&id).await.state.ending.expect("ended");
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Exited, Some(4))
    );
    let late = TerminalInput {
        pieces: vec![InputPiece::Text("too late".to_owned())],
        lease: None,
    };
    let error = fixture.engine.send_input(&fixture.me, &id, late).await;
    let error = error.expect_err("it has ended");
    assert!(matches!(error, Error::ControlFailed(_)), "{error:?}");
    assert_eq!(error.code(), ErrorCode::ProcessControl);
    fixture.close().await;
}

/// After the exit the status is not `running`, the end time is set and the exit code is plausible.
pub(crate) async fn req_007_status_tells_how_it_ended(fixture: EngineFixture) {
    let id = fixture
        .start(&["sh", "-c", "read x; echo bye; exit 7"])
        .await;
    let running = fixture.info(&id);
    assert_eq!(running.status().session, "running");
    assert!(running.state.pid.is_some_and(exists));
    assert!(running.state.started_at.is_some());
    assert_eq!((running.state.ended_at, running.state.ending), (None, None));

    fixture.line(&id, "").await;
    let ended = fixture.ended(&id).await;
    assert_eq!(ended.status().session, "exited");
    assert!(ended.state.ended_at >= ended.state.started_at);
    assert!(ended.state.ended_at.is_some());
    assert_eq!(ended.state.ending.and_then(|ending| ending.code), Some(7));
    let output = fixture.output(&id).await;
    assert!(output.ends_with("bye\r\n"), "{output:?}");
    assert_eq!(ended.output_end, output.len() as u64);
    fixture.close().await;
}

/// After a kill of a long-running program the status is `killed` or `exited`, and the end time is
/// recorded.
pub(crate) async fn req_008_kill_by_term_kill_and_int(fixture: EngineFixture) {
    // The default: SIGTERM to the whole tree, and SIGKILL where that does not help.
    let id = fixture.shell().await;
    let stopped = fixture
        .engine
        .stop(&fixture.me, &id, StopRequest::default())
        .await;
    let stopped = stopped.expect("it ends");
    assert_eq!(stopped.status().session, "killed");
    assert!(stopped.state.ended_at.is_some());
    assert_eq!(stopped.survivors, Vec::<u32>::new());

    for name in ["SIGTERM", "SIGKILL", "SIGINT", "SIGHUP"] {
        let id = fixture.start(&["sleep", "300"]).await;
        let signal: Signal = name.parse().expect("a signal");
        let sent = fixture.engine.signal(&fixture.me, &id, signal).await;
        sent.expect("it runs");
        let info = fixture.ended(&id).await;
        assert_eq!(info.status().session, "exited", "{name}");
        assert!(info.state.ended_at.is_some());
        let ending = info.state.ending.expect("ended");
        assert_eq!((ending.code, ending.signal), (None, Some(signal)));
    }
    fixture.close().await;
}

/// After several spawns the list contains their ids.
pub(crate) async fn req_009_list_has_every_session(fixture: EngineFixture) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(fixture.start(&["cat"]).await);
    }
    let ended = fixture.start(&["true"]).await;
    fixture.ended(&ended).await;
    ids.push(ended);
    let listed = fixture.engine.list(&fixture.me, &ListFilter::default());
    let found: Vec<String> = listed.iter().map(|info| info.id.to_string()).collect();
    ids.reverse();
    assert_eq!(found, ids, "newest first");
    let statuses: Vec<_> = listed.iter().map(|info| info.status().session).collect();
    assert_eq!(statuses, ["exited", "running", "running", "running"]);
    fixture.close().await;
}

/// The cleanup of an ended session removes it and returns its id; ended sessions beyond the TTL are
/// removed automatically.
pub(crate) async fn req_010_ended_sessions_are_cleaned_and_expire(fixture: EngineFixture) {
    let id = fixture.start(&["true"]).await;
    let info = fixture.ended(&id).await;
    assert_eq!(info.spec.retention, Some(Duration::from_secs(300)));
    let running = fixture.start(&["cat"]).await;
    let both = [id.clone(), running.clone()];
    let cleaned = fixture
        .engine
        .clean(&fixture.me, &both)
        .await
        .expect("cleaned");
    assert_eq!(
        cleaned,
        [
            (id.clone(), CleanOutcome::Cleaned),
            (running.clone(), CleanOutcome::Running)
        ]
    );
    let gone = |id: &str| matches!(fixture.engine.info(&fixture.me, id), Err(Error::NotFound));
    assert!(gone(&id) && !gone(&running));

    let mut brief = request(&["true"]);
    brief.options.retention = RetentionRequest::For(Duration::from_millis(50));
    let brief = fixture.started(brief).await;
    until("its time is over", || gone(&brief)).await;
    assert!(!gone(&running));
    fixture.close().await;
}

/// A resize does not fail, and an interactive program observes the new size.
pub(crate) async fn req_011_a_new_size_reaches_the_program(fixture: EngineFixture) {
    let id = fixture.shell().await;
    fixture
        .line(&id, "trap 'echo changed' WINCH; stty size")
        .await;
    fixture.seen(&id, "\r24 80\r\n").await;
    // The shell must be in the foreground again: SIGWINCH goes to the foreground process group
    // only.
    fixture.seen_times(&id, "ready> ", 2).await;
    let size = TermSize {
        cols: 120,
        rows: 40,
    };
    let resized = fixture.engine.resize(&fixture.me, &id, size).await;
    resized.expect("it has a terminal");
    // bash runs traps between commands.
    fixture.line(&id, "stty size").await;
    fixture.seen(&id, "\r40 120\r\n").await;
    fixture.seen(&id, "changed\r\n").await;
    assert_eq!(fixture.info(&id).size(), Some(size));
    let screen = fixture
        .engine
        .screen(&fixture.me, &id)
        .await
        .expect("readable");
    assert_eq!((screen.size, screen.rows.len()), (size, 40));
    let nothing = TermSize { cols: 0, rows: 40 };
    let refused = fixture.engine.resize(&fixture.me, &id, nothing).await;
    assert_eq!(refused.expect_err("no size").code(), ErrorCode::Value);
    fixture.close().await;
}

/// A program that prints causes output events, and its end exactly one exit event.
pub(crate) async fn req_012_events_of_output_and_of_the_end_once(fixture: EngineFixture) {
    let script = "console.log('one'); setTimeout(() => console.log('two'), 50)";
    let id = fixture
        .start(&node(script, "echo one; sleep 0.05; echo two"))
        .await;
    let mut events = fixture.events(&id);
    let (mut actual, mut exits) = (Vec::new(), Vec::new());
    let listening = async {
        while let Some(event) = events.next().await.expect("readable") {
            match event {
                TerminalEvent::Output { offset, data } => {
                    assert!(exits.is_empty() && offset == actual.len() as u64);
                    actual.extend(data);
                }
                TerminalEvent::Gap { from, to } => panic!("{from} to {to} is gone"),
                TerminalEvent::Exit(ending) => exits.push(ending),
            }
        }
        assert_eq!(events.next().await.expect("readable"), None);
    };
    let received = tokio::time::timeout(PATIENCE, listening).await;
    received.expect("its end is told");
    assert_eq!(String::from_utf8(actual).expect("text"), "one\r\ntwo\r\n");
    let codes: Vec<_> = exits.iter().map(|ending| ending.code).collect();
    assert_eq!(codes, [Some(0)]);
    fixture.close().await;
}

/// After `destroy` none of several long-running sessions is running, and the list is empty.
pub(crate) async fn req_013_destroy_ends_everything(fixture: EngineFixture) {
    let deaf = "trap '' TERM HUP INT; while :; do sleep 300; done";
    let forks = "sleep 300 & setsid sleep 300 & cat";
    let commands: [&[&str]; 5] = [
        &["bash", "--norc", "-i"],
        &["cat"],
        &["sh", "-c", deaf],
        &["sh", "-c", forks],
        &["true"],
    ];
    let mut sessions = Vec::new();
    for words in commands {
        let id = fixture.start(words).await;
        let pid = fixture.info(&id).state.pid;
        sessions.push((id, pid));
    }
    let mut events: Vec<_> = sessions.iter().map(|(id, _)| fixture.events(id)).collect();
    fixture
        .engine
        .destroy(&fixture.me)
        .await
        .expect("destroyed");
    assert!(
        fixture
            .engine
            .list(&fixture.me, &ListFilter::default())
            .is_empty()
    );
    for (id, pid) in &sessions {
        let found = fixture.engine.info(&fixture.me, id);
        assert!(matches!(found, Err(Error::NotFound)), "{found:?}");
        assert_eq!(members(id), Vec::<u32>::new());
        assert!(pid.is_none_or(|pid| !exists(pid)), "{pid:?} is there");
    }
    // Each subscriber received the end.
    for events in &mut events {
        let mut last = None;
        while let Ok(Some(event)) = events.next().await {
            last = Some(event);
        }
        assert!(matches!(last, Some(TerminalEvent::Exit(_))), "{last:?}");
    }
    // The engine can still be used.
    let again = fixture.start(&["true"]).await;
    fixture.ended(&again).await;
    fixture.close().await;
}
