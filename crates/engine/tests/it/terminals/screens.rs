use ostler_engine::terminal::SCREENS_LIVE;
use ostler_engine::{WaitEnd, WaitFor};
use ostler_journal::retention::OutputPolicy;
use ostler_model::{Cursor, Event, Lifetime, RestartPolicy, TermSize};

use super::fixture::{SIZE, TerminalFixture, key, terminal, within_timeout};
use crate::test_engine::test_caller;

fn vim(file: &std::path::Path) -> Vec<String> {
    let words = ["vim", "-u", "NONE", "-N", "-n", "-i", "NONE"];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.push(file.display().to_string());
    words
}

fn request(words: &[String]) -> ostler_engine::StartRequest {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    terminal(&words)
}

#[tokio::test(flavor = "multi_thread")]
async fn vim_edits_and_saves_a_file() {
    let fixture = TerminalFixture::new().await;
    let file = fixture.state.path().join("file.txt");
    std::fs::write(&file, "first\nsecond\n").expect("room");
    let id = fixture
        .start_request(request(&vim(&file)))
        .await
        .id
        .to_string();
    let view = fixture.wait_text(&id, "second").await;
    assert!(view.alternate, "{view:#?}");
    assert_eq!(view.size, SIZE);
    assert_eq!((view.cursor.col, view.cursor.row), (0, 0));
    fixture.press_keys(&id, vec![key("down"), key("end")]).await;
    fixture
        .wait_screen(&id, |view| view.cursor.row == 1 && view.cursor.col == 5)
        .await;
    fixture.type_text(&id, "ahand漢").await;
    fixture.wait_text(&id, "secondhand漢").await;
    fixture.press_keys(&id, vec![key("escape")]).await;
    fixture.type_text(&id, ":wq\n").await;
    let info = fixture.wait_end(&id).await;
    assert_eq!(info.state.ending.and_then(|it| it.code), Some(0));
    let saved = std::fs::read_to_string(&file).expect("saved");
    assert_eq!(saved, "first\nsecondhand漢\n");
    let after = fixture.screen(&id).await;
    assert!(!after.alternate);
    assert!(after.exact);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vim_is_resized_to_300_columns() {
    let fixture = TerminalFixture::new().await;
    let file = fixture.state.path().join("file.txt");
    std::fs::write(&file, "x".repeat(290)).expect("room");
    let id = fixture
        .start_request(request(&vim(&file)))
        .await
        .id
        .to_string();
    fixture
        .wait_screen(&id, |view| view.rows[3] == "x".repeat(50))
        .await;
    let wide = TermSize {
        cols: 300,
        rows: 40,
    };
    fixture
        .engine
        .resize(&test_caller(), &id, wide)
        .await
        .expect("resized");
    let view = fixture
        .wait_screen(&id, |view| view.rows[0] == "x".repeat(290))
        .await;
    assert_eq!((view.size, view.rows.len()), (wide, 40));
    assert_eq!(fixture.info(&id).size(), Some(wide));
    assert_eq!(fixture.info(&id).state.size, Some(wide));
    // The event is at the offset where the old size ended, so that a fresh parse has the same
    // result.
    fixture
        .engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    fixture.type_text(&id, ":q!\n").await;
    fixture.wait_end(&id).await;
    fixture
        .engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let resized: Vec<_> = events
        .iter()
        .filter(|it| matches!(it.event, Event::Resized { .. }))
        .collect();
    assert_eq!(resized.len(), 1);
    assert!(resized[0].offset > 0);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_is_the_same_is_no_event() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    let other = TermSize { cols: 81, rows: 24 };
    for size in [SIZE, other, other, SIZE] {
        fixture
            .engine
            .resize(&test_caller(), &id, size)
            .await
            .expect("resized");
    }
    fixture.stop(&id).await;
    fixture
        .engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let sizes: Vec<TermSize> = events
        .iter()
        .filter_map(|it| {
            if let Event::Resized { size } = it.event {
                return Some(size);
            }
            None
        })
        .collect();
    assert_eq!(sizes, [other, SIZE]);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_outlives_cleared_output() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&["sh", "-c", "printf 'one\\r\\ntwo '; cat"])
        .await;
    let before = fixture.wait_text(&id, "two").await;
    let gone = fixture
        .engine
        .clear_output(&test_caller(), &id)
        .await
        .expect("cleared");
    assert_eq!(gone, before.offset);
    assert_eq!(fixture.screen(&id).await, before);
    fixture.type_text(&id, "x").await;
    let after = fixture.wait_text(&id, "two x").await;
    assert_eq!(after.rows[0], "one");
    assert!(after.exact);
    let page = fixture.page(&id, Some(0), None).await;
    assert_eq!((page.data.as_slice(), page.truncated), (&b"x"[..], true));
    assert_eq!((page.offset, page.start_offset), (gone, gone));
    // Never viewed: it is parsed before the output is dropped.
    let other = fixture.start(&["sh", "-c", "printf unseen; cat"]).await;
    fixture.wait_output(&other, "unseen").await;
    fixture
        .engine
        .clear_output(&test_caller(), &other)
        .await
        .expect("cleared");
    let view = fixture.screen(&other).await;
    assert_eq!((view.rows[0].as_str(), view.exact), ("unseen", true));
    fixture.engine.shutdown().await;
}

/// Waits for this many parts of output, each of 7.5 MB in lines of 41 bytes, to which the terminal
/// adds a byte each.
async fn wait_part(fixture: &TerminalFixture, id: &str, part: u64) {
    let offset = part * 7_680_000;
    let until = WaitFor::OutputAfter(Cursor { offset, event: 0 });
    assert_eq!(fixture.wait_for(id, until).await, WaitEnd::Output);
}

/// As [`wait_part`], and reads the screen before the next one is printed.
async fn read_part(fixture: &TerminalFixture, id: &str, part: u64) {
    wait_part(fixture, id, part).await;
    assert!(fixture.screen(id).await.exact, "{part}");
    fixture.type_text(id, "\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_outlives_trimmed_output() {
    const MIB: u64 = 1024 * 1024;
    let fixture = TerminalFixture::with(|settings| {
        settings.output = OutputPolicy {
            head_bytes: MIB,
            tail_bytes: MIB,
        };
    })
    .await;
    // The first line is never painted again, and its segment is the first that goes: the first parts
    // do not fill it, so that nothing is trimmed before the screen is looked at. The screen is read
    // after each part: a slow machine parses no more than that within the limit of one parse.
    let filler = "yes 0123456789012345678901234567890123456789 | head -c 7500000; read x";
    let script = format!(
        "for part in 1 2 3 4 5 6 7 8; do {filler}; done; printf '\\033[2J\\033[Hkept\\033[2;24r\\033[5;1H'; \
         read x; for part in 1 2 3 4 5 6 7 8 9 10 11 12; do {filler}; done"
    );
    let id = fixture.start(&["sh", "-c", &script]).await;
    for part in 1..=8 {
        read_part(&fixture, &id, part).await;
    }
    let before = fixture.wait_text(&id, "kept").await;
    assert_eq!((before.rows[0].as_str(), before.exact), ("kept", true));
    let mut notices = fixture.engine.subscribe();
    fixture.type_text(&id, "\n").await;
    let ((), ()) = tokio::join!(
        async {
            for part in 9..20 {
                read_part(&fixture, &id, part).await;
            }
            // A wait for output makes the driver enable notifications.
            wait_part(&fixture, &id, 20).await;
        },
        async {
            while !matches!(
                within_timeout(notices.recv())
                    .await
                    .expect("told")
                    .record
                    .event,
                Event::Trimmed { .. }
            ) {}
        }
    );
    let info = fixture.info(&id);
    assert!(info.state.trimmed_bytes > 0, "{:?}", info.state);
    let view = fixture.screen(&id).await;
    assert_eq!(view.rows[0], "kept", "{view:#?}");
    assert!(view.offset >= info.output_end);
    let page = fixture.page(&id, Some(0), Some(10)).await;
    assert!(page.truncated && page.offset == page.start_offset);
    assert_eq!(page.end_offset - page.start_offset, MIB);
    fixture.stop(&id).await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn screens_beyond_the_limit_leave_checkpoints() {
    let fixture = TerminalFixture::new().await;
    let mut sessions = Vec::new();
    for number in 0..SCREENS_LIVE + 2 {
        let script = format!("printf 'number {number}.\\033]0;title {number}\\007'; exec cat");
        let id = fixture.start(&["sh", "-c", &script]).await;
        let view = fixture
            .wait_screen(&id, |view| !view.title.is_empty())
            .await;
        assert_eq!(view.rows[0], format!("number {number}."));
        sessions.push((id, view));
    }
    let stored = |id: &str| fixture.dir(id).join("screen").exists();
    let left = sessions.iter().filter(|(id, _)| stored(id)).count();
    assert_eq!(left, 2);
    assert!(stored(&sessions[0].0) && stored(&sessions[1].0));
    for (id, view) in &sessions {
        assert_eq!(fixture.screen(id).await, *view);
    }
    // A damaged checkpoint is ignored.
    let (id, view) = &sessions[SCREENS_LIVE];
    assert!(stored(id), "it was looked at longest ago");
    std::fs::write(fixture.dir(id).join("screen"), "{").expect("room");
    assert_eq!(fixture.screen(id).await, *view);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_attempt_has_a_terminal_of_its_own() {
    let fixture = TerminalFixture::new().await;
    let mut request = terminal(&["sh", "-c", "echo from $$; stty size; read x; exit 1"]);
    request.lifetime = Some(Lifetime::service(RestartPolicy::Always { max: 5 }));
    let id = fixture.start_request(request).await.id.to_string();
    let first = fixture.wait_text(&id, "24 80").await;
    let size = TermSize { cols: 90, rows: 30 };
    fixture
        .engine
        .resize(&test_caller(), &id, size)
        .await
        .expect("resized");
    fixture.type_text(&id, "\n").await;
    let second = fixture.wait_text(&id, "30 90").await;
    assert_eq!(second.size, size);
    assert_ne!(second.rows[0], first.rows[0], "{second:#?}");
    assert_eq!(second.rows[1], "30 90");
    fixture.stop(&id).await;
    assert_eq!(fixture.screen(&id).await.rows[1], "30 90");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn megabytes_of_escapes_are_a_screen() {
    paint_screens(8_500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_fifty_megabytes_of_escapes_are_a_screen() {
    paint_screens(85_000).await;
}

/// Paints a whole screen this many times, each with 606 bytes, and reads the last one.
async fn paint_screens(times: u64) {
    let fixture = TerminalFixture::new().await;
    let script = "
import sys
line = ''.join(f'\\033[{row};{row}H\\033[3{row % 8}mrow {row:02}\\033[0m\\033[K' for row in range(1, 25))
for _ in range(int(sys.argv[1]) // 100):
    sys.stdout.write(line * 100)
sys.stdout.write('\\033[24;1H\\033[Kdone')
sys.stdout.flush()
sys.stdin.readline()
";
    let total = times * 606 + 14;
    let times = times.to_string();
    let id = fixture.start(&["python3", "-c", script, &times]).await;
    let all = Cursor {
        offset: total - 1,
        event: 0,
    };
    assert_eq!(
        fixture.wait_for(&id, WaitFor::OutputAfter(all)).await,
        WaitEnd::Output
    );
    // Concurrent views share one parse.
    let (view, other) = tokio::join!(fixture.screen(&id), fixture.screen(&id));
    assert_eq!(view, other);
    assert_eq!((view.offset, view.exact), (total, true));
    let expected: Vec<String> = (1..24)
        .map(|row| format!("{}row {row:02}", " ".repeat(row - 1)))
        .chain(["done".to_owned()])
        .collect();
    assert_eq!(view.rows, expected);
    fixture.stop(&id).await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_painted_again_is_the_screen() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&[
            "sh",
            "-c",
            "printf 'a\\r\\n\\033[1mb\\033[0m\\033[10;5Hc'; exec cat",
        ])
        .await;
    let view = fixture.wait_text(&id, "c").await;
    let (paint, checkpoint) = fixture
        .engine
        .repaint(&test_caller(), &id)
        .await
        .expect("painted");
    assert_eq!(checkpoint.offset, view.offset);
    let mut other = ostler_terminal::Screen::new(SIZE, None);
    other.feed(&paint);
    assert_eq!(other.snapshot().rows, view.rows);
    assert_eq!(other.snapshot().cursor, view.cursor);
    fixture.stop(&id).await;
    fixture.engine.shutdown().await;
}
