//! What sessions do (REQ-001 to REQ-013 and REQ-005A).

use ostler::journal::LineQuery;
use ostler::model::{ErrorCode, Signal, TermSize, TerminationCause};
use ostler::{
    CleanOutcome, Error, ListFilter, RetentionRequest, StopRequest, TERMINAL_VIEW_BYTES,
    TerminalEvent, TerminalInput, TerminalPageQuery, WaitEnd, WaitFor,
};
use std::time::Duration;

use crate::lab::{Lab, PATIENCE, exists, key, members, node, request, until, var};
use ostler::terminal::InputPiece;

/// 调用 `spawn('node', …)` 返回非空 `sessionId`，且 `getStatus(sessionId).status === 'running'`。
pub(crate) async fn req_001_spawn_answers_an_id_and_the_session_runs(lab: Lab) {
    let id = lab
        .start(&node("setInterval(() => {}, 1000)", "exec cat"))
        .await;
    assert!(!id.is_empty());
    assert_eq!(lab.status(&id), "running");
    lab.close().await;
}

/// 传入 `cols/rows` 可影响 `resize` 前的初始尺寸；`env` 需支持覆盖/追加。
pub(crate) async fn req_002_spawn_takes_arguments_directory_environment_and_size(lab: Lab) {
    let script = r#"stty size; pwd; echo "$0-$1 $LANG $ADDED $HOME""#;
    let words = ["sh", "-c", script, "zero", "one"];
    let default = lab.start(&words).await;
    lab.ended(&default).await;
    let said = lab.output(&default).await;
    assert_eq!(said, "24 80\r\n/tmp\r\nzero-one C.UTF-8  /nonexistent\r\n");

    let mut asked = request(&words);
    asked.pty = Some(TermSize {
        cols: 132,
        rows: 43,
    });
    asked.cwd = "/usr".into();
    // One variable replaced, one added.
    asked.set_env = vec![var("LANG", "C"), var("ADDED", "new")];
    let other = lab.started(asked).await;
    lab.ended(&other).await;
    let said = lab.output(&other).await;
    assert_eq!(said, "43 132\r\n/usr\r\nzero-one C new /nonexistent\r\n");

    let mut replaced = request(&words);
    replaced.base_env = vec![var("PATH", "/usr/bin:/bin")];
    let third = lab.started(replaced).await;
    lab.ended(&third).await;
    let said = lab.output(&third).await;
    assert_eq!(said, "24 80\r\n/tmp\r\nzero-one   \r\n");
    lab.close().await;
}

/// 启动持续输出的进程后，在进程运行中能读取到逐步增长的输出。
pub(crate) async fn req_003_output_is_seen_while_the_program_prints(lab: Lab) {
    let script = "let n = 0; setInterval(() => console.log(`tick ${n++}`), 10)";
    let instead = "n=0; while :; do echo tick $n; n=$((n+1)); sleep 0.01; done";
    let id = lab.start(&node(script, instead)).await;
    let mut lengths = vec![0];
    for round in 0..3 {
        lab.seen(&id, &format!("tick {round}\r\n")).await;
        assert_eq!(lab.status(&id), "running");
        let length = lab.output(&id).await.len();
        assert!(length > 0 && length >= lengths[lengths.len() - 1]);
        let from = lab.info(&id).cursor();
        let more = WaitFor::OutputAfter(from);
        let wait = lab.engine.wait(&lab.me, &id, &more, Some(PATIENCE));
        assert_eq!(wait.await.expect("it is known").end, WaitEnd::Output);
        lengths.push(lab.output(&id).await.len());
    }
    assert!(
        lengths.windows(2).all(|pair| pair[0] < pair[1]),
        "{lengths:?}"
    );
    lab.close().await;
}

/// 对不存在的 `sessionId` 调用 `getOutput` 会抛出带 `code=SESSION_NOT_FOUND` 的错误。
pub(crate) async fn req_004_output_is_had_whole_and_an_unknown_session_is_an_error(lab: Lab) {
    let id = lab.start(&["sh", "-c", "echo one; echo two; exit 3"]).await;
    lab.ended(&id).await;
    assert_eq!(lab.output(&id).await, "one\r\ntwo\r\n");

    let unknown = "019b0000-0000-7000-8000-000000000000";
    let read = lab
        .engine
        .read_terminal(&lab.me, unknown, TerminalPageQuery::default());
    let error = read.await.expect_err("nobody knows it");
    assert!(matches!(error, Error::SessionNotFound), "{error:?}");
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
    let name = error.code().info().name;
    assert_eq!(name.to_uppercase(), "SESSION_NOT_FOUND");
    lab.close().await;
}

/// 输出超过上限后，缓冲区长度不超过上限，且末尾包含最新输出片段。
pub(crate) async fn req_005_the_view_keeps_the_newest_megabyte(lab: Lab) {
    let script = "seq 1 400000; echo the newest";
    let id = lab.start(&["sh", "-c", script]).await;
    let length = lab.ended(&id).await.output_end;
    assert!(length > 2 * TERMINAL_VIEW_BYTES, "{length}");
    let whole = TerminalPageQuery::default();
    let page = lab.engine.read_terminal(&lab.me, &id, whole).await;
    let page = page.expect("readable");
    assert!(page.data.len() as u64 <= TERMINAL_VIEW_BYTES);
    assert!(page.data.ends_with(b"400000\r\nthe newest\r\n"));
    assert_eq!(page.end_offset, length);
    // The journal keeps what is no longer in the view.
    let journal = lab.engine.journal(&lab.me, &id).expect("known");
    let lines = journal
        .lines(&LineQuery::default())
        .expect("readable")
        .lines;
    assert!(lines[0].bytes.starts_with(b"1"));
    lab.close().await;
}

/// 提供 `readOutput(sessionId, { offset, limit })`（或等价 API），返回 `nextOffset` 作为下一次读取游标；
/// 当 `offset < startOffset` 时返回 `truncated=true` 且自动将 `offset` 跳至 `startOffset`。
pub(crate) async fn req_005a_output_is_read_by_offset_and_limit(lab: Lab) {
    let id = lab
        .start(&["sh", "-c", "seq 1 1000; printf 进程管理器"])
        .await;
    lab.ended(&id).await;
    let whole = lab.output(&id).await;
    let (mut read, mut offset) = (Vec::new(), 0);
    loop {
        let query = TerminalPageQuery {
            offset: Some(offset),
            limit: Some(100),
        };
        let page = lab.engine.read_terminal(&lab.me, &id, query).await;
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

    let much = lab.start(&["sh", "-c", "seq 1 300000"]).await;
    lab.ended(&much).await;
    let query = TerminalPageQuery {
        offset: Some(5),
        limit: Some(64),
    };
    let page = lab.engine.read_terminal(&lab.me, &much, query).await;
    let page = page.expect("readable");
    assert!(page.truncated && page.start_offset > 5);
    assert_eq!(page.offset, page.start_offset);
    assert_eq!(page.next_offset, page.offset + page.data.len() as u64);
    lab.close().await;
}

/// 向交互式进程写入文本可触发可观测输出；对已结束 Session 写入返回失败/或抛出可识别错误。
pub(crate) async fn req_006_text_and_keys_reach_the_program(lab: Lab) {
    let id = lab.shell().await;
    lab.line(&id, "echo $((20 + 22))").await;
    lab.seen(&id, "\r42\r\n").await;

    // Keys as a program sees them, until ctrl-d on an empty line ends its input.
    lab.line(&id, "stty -echo; cat -v; echo over").await;
    lab.seen(&id, "cat -v; echo over\r\n").await;
    for name in ["up", "home", "f5", "tab", "escape", "alt-x"] {
        lab.keys(&id, vec![key(name)]).await;
    }
    lab.keys(
        &id,
        vec![InputPiece::Raw(b"\x02raw".to_vec()), key("enter")],
    )
    .await;
    let seen = lab.seen(&id, "raw\r\n").await;
    for name in ["^[[A", "^[[H", "^[[15~", "\t", "^[x", "^Braw"] {
        assert!(seen.contains(name), "no {name:?} in {seen:?}");
    }
    lab.keys(&id, vec![key("ctrl-d")]).await;
    lab.seen(&id, "over\r\n").await;

    lab.line(&id, "exit 4").await;
    let ending = lab.ended(&id).await.state.ending.expect("ended");
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Exited, Some(4))
    );
    let late = TerminalInput {
        pieces: vec![InputPiece::Text("too late".to_owned())],
        lease: None,
    };
    let error = lab.engine.send_input(&lab.me, &id, late).await;
    let error = error.expect_err("it has ended");
    assert!(matches!(error, Error::ControlFailed(_)), "{error:?}");
    assert_eq!(error.code(), ErrorCode::ProcessControl);
    lab.close().await;
}

/// 进程退出后 `status !== 'running'` 且 `endTime !== null`，`exitCode` 合理。
pub(crate) async fn req_007_status_tells_how_it_ended(lab: Lab) {
    let id = lab.start(&["sh", "-c", "read x; echo bye; exit 7"]).await;
    let running = lab.info(&id);
    assert_eq!(running.status().session, "running");
    assert!(running.state.pid.is_some_and(exists));
    assert!(running.state.started_at.is_some());
    assert_eq!((running.state.ended_at, running.state.ending), (None, None));

    lab.line(&id, "").await;
    let ended = lab.ended(&id).await;
    assert_eq!(ended.status().session, "exited");
    assert!(ended.state.ended_at >= ended.state.started_at);
    assert!(ended.state.ended_at.is_some());
    assert_eq!(ended.state.ending.and_then(|ending| ending.code), Some(7));
    let output = lab.output(&id).await;
    assert!(output.ends_with("bye\r\n"), "{output:?}");
    assert_eq!(ended.output_end, output.len() as u64);
    lab.close().await;
}

/// 对长时间运行进程执行 `kill` 后，状态最终变为 `killed` 或 `exited`（由平台行为决定），并记录结束时间。
pub(crate) async fn req_008_kill_by_term_kill_and_int(lab: Lab) {
    // The default: SIGTERM to the whole tree, and SIGKILL where that does not help.
    let id = lab.shell().await;
    let stopped = lab.engine.stop(&lab.me, &id, StopRequest::default()).await;
    let stopped = stopped.expect("it ends");
    assert_eq!(stopped.status().session, "killed");
    assert!(stopped.state.ended_at.is_some());
    assert_eq!(stopped.survivors, Vec::<u32>::new());

    for name in ["SIGTERM", "SIGKILL", "SIGINT", "SIGHUP"] {
        let id = lab.start(&["sleep", "300"]).await;
        let signal: Signal = name.parse().expect("a signal");
        let sent = lab.engine.signal(&lab.me, &id, signal).await;
        sent.expect("it runs");
        let info = lab.ended(&id).await;
        assert_eq!(info.status().session, "exited", "{name}");
        assert!(info.state.ended_at.is_some());
        let ending = info.state.ending.expect("ended");
        assert_eq!((ending.code, ending.signal), (None, Some(signal)));
    }
    lab.close().await;
}

/// 创建多个 Session 后 `listSessions()` 返回包含对应 `sessionId` 的条目。
pub(crate) async fn req_009_list_has_every_session(lab: Lab) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(lab.start(&["cat"]).await);
    }
    let ended = lab.start(&["true"]).await;
    lab.ended(&ended).await;
    ids.push(ended);
    let listed = lab.engine.list(&lab.me, &ListFilter::default());
    let found: Vec<String> = listed.iter().map(|info| info.id.to_string()).collect();
    ids.reverse();
    assert_eq!(found, ids, "newest first");
    let statuses: Vec<_> = listed.iter().map(|info| info.status().session).collect();
    assert_eq!(statuses, ["exited", "running", "running", "running"]);
    lab.close().await;
}

/// 结束 Session 后，`cleanup(sessionId)` 会移除并返回该 `sessionId`；超过 TTL 的已结束 Session 会被自动移除。
pub(crate) async fn req_010_ended_sessions_are_cleaned_and_expire(lab: Lab) {
    let id = lab.start(&["true"]).await;
    let info = lab.ended(&id).await;
    assert_eq!(info.spec.retention, Some(Duration::from_secs(300)));
    let running = lab.start(&["cat"]).await;
    let both = [id.clone(), running.clone()];
    let cleaned = lab.engine.clean(&lab.me, &both).await.expect("cleaned");
    assert_eq!(
        cleaned,
        [
            (id.clone(), CleanOutcome::Cleaned),
            (running.clone(), CleanOutcome::Running)
        ]
    );
    let gone = |id: &str| matches!(lab.engine.info(&lab.me, id), Err(Error::NotFound));
    assert!(gone(&id) && !gone(&running));

    let mut brief = request(&["true"]);
    brief.retention = RetentionRequest::For(Duration::from_millis(50));
    let brief = lab.started(brief).await;
    until("its time is over", || gone(&brief)).await;
    assert!(!gone(&running));
    lab.close().await;
}

/// 调用 `resize(sessionId, cols, rows)` 不抛错，且对后续交互程序（如 `bash`）行为可观测（测试至少保证 API 可调用）。
pub(crate) async fn req_011_a_new_size_reaches_the_program(lab: Lab) {
    let id = lab.shell().await;
    lab.line(&id, "trap 'echo changed' WINCH; stty size").await;
    lab.seen(&id, "\r24 80\r\n").await;
    // The shell must be in the foreground again: SIGWINCH goes to the foreground process group
    // only.
    lab.seen_times(&id, "ready> ", 2).await;
    let size = TermSize {
        cols: 120,
        rows: 40,
    };
    let resized = lab.engine.resize(&lab.me, &id, size).await;
    resized.expect("it has a terminal");
    // bash runs traps between commands.
    lab.line(&id, "stty size").await;
    lab.seen(&id, "\r40 120\r\n").await;
    lab.seen(&id, "changed\r\n").await;
    assert_eq!(lab.info(&id).size(), Some(size));
    let screen = lab.engine.screen(&lab.me, &id).await.expect("readable");
    assert_eq!((screen.size, screen.rows.len()), (size, 40));
    let nothing = TermSize { cols: 0, rows: 40 };
    let refused = lab.engine.resize(&lab.me, &id, nothing).await;
    assert_eq!(refused.expect_err("no size").code(), ErrorCode::Value);
    lab.close().await;
}

/// 启动输出型进程时能收到 output 事件；进程结束时能收到 exit 事件一次。
pub(crate) async fn req_012_events_of_output_and_of_the_end_once(lab: Lab) {
    let script = "console.log('one'); setTimeout(() => console.log('two'), 50)";
    let id = lab
        .start(&node(script, "echo one; sleep 0.05; echo two"))
        .await;
    let mut events = lab.events(&id);
    let (mut told, mut exits) = (Vec::new(), Vec::new());
    let listening = async {
        while let Some(event) = events.next().await.expect("readable") {
            match event {
                TerminalEvent::Output { offset, data } => {
                    assert!(exits.is_empty() && offset == told.len() as u64);
                    told.extend(data);
                }
                TerminalEvent::Gap { from, to } => panic!("{from} to {to} is gone"),
                TerminalEvent::Exit(ending) => exits.push(ending),
            }
        }
        assert_eq!(events.next().await.expect("readable"), None);
    };
    let heard = tokio::time::timeout(PATIENCE, listening).await;
    heard.expect("its end is told");
    assert_eq!(String::from_utf8(told).expect("text"), "one\r\ntwo\r\n");
    let codes: Vec<_> = exits.iter().map(|ending| ending.code).collect();
    assert_eq!(codes, [Some(0)]);
    lab.close().await;
}

/// 创建多个长运行 Session 后调用 `destroy()`，它们最终都不再是 `running`，且管理器不再返回任何 Session。
pub(crate) async fn req_013_destroy_ends_everything(lab: Lab) {
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
        let id = lab.start(words).await;
        let pid = lab.info(&id).state.pid;
        sessions.push((id, pid));
    }
    let mut events: Vec<_> = sessions.iter().map(|(id, _)| lab.events(id)).collect();
    lab.engine.destroy(&lab.me).await.expect("destroyed");
    assert!(lab.engine.list(&lab.me, &ListFilter::default()).is_empty());
    for (id, pid) in &sessions {
        let found = lab.engine.info(&lab.me, id);
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
    let again = lab.start(&["true"]).await;
    lab.ended(&again).await;
    lab.close().await;
}
