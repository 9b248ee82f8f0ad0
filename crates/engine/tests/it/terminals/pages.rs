use ostler_engine::{WaitEnd, WaitFor};
use ostler_model::Cursor;

use super::fixture::TerminalFixture;

fn after(offset: u64) -> WaitFor {
    WaitFor::OutputAfter(Cursor { offset, event: 0 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_character_that_comes_byte_by_byte_is_read_whole() {
    let fixture = TerminalFixture::new().await;
    let script = "
import sys, tty
tty.setraw(0)
for byte in 'é漢🦀'.encode():
    sys.stdout.buffer.write(bytes([byte]))
    sys.stdout.flush()
    sys.stdin.buffer.read(1)
";
    let id = fixture.start(&["python3", "-c", script]).await;
    let (mut at, mut seen) = (0, String::new());
    for printed in 0.."é漢🦀".len() as u64 {
        assert_eq!(fixture.wait_for(&id, after(printed)).await, WaitEnd::Output);
        let page = fixture.page(&id, Some(at), Some(100)).await;
        assert_eq!((page.offset, page.end_offset), (at, printed + 1));
        at = page.next_offset;
        seen += std::str::from_utf8(&page.data).expect("whole characters");
        let screen = fixture.screen(&id).await;
        assert_eq!(screen.rows[0], seen, "no half of one is shown");
        fixture.type_text(&id, ".").await;
    }
    assert_eq!(seen, "é漢🦀");
    fixture.wait_end(&id).await;
    assert_eq!(fixture.wait_for(&id, after(9)).await, WaitEnd::Exit);
    assert_eq!(fixture.wait_for(&id, after(8)).await, WaitEnd::Output);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_is_read_at_the_end() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&["sh", "-c", "printf 'a\\346\\274'; read x"])
        .await;
    fixture.wait_for(&id, after(2)).await;
    assert_eq!(fixture.page(&id, None, None).await.data, b"a");
    fixture.stop(&id).await;
    assert_eq!(fixture.page(&id, None, None).await.data, b"a\xE6\xBC");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_reaches_back_so_far_and_no_further() {
    let fixture = TerminalFixture::with(|settings| settings.terminal_view_bytes = 1_000).await;
    let script = "stty -opost; yes 123456789 | head -n 500; printf end";
    let id = fixture.start(&["sh", "-c", script]).await;
    fixture.wait_end(&id).await;
    let page = fixture.page(&id, Some(0), Some(u64::MAX)).await;
    assert_eq!((page.start_offset, page.end_offset), (4_003, 5_003));
    assert_eq!((page.offset, page.data.len()), (4_003, 1_000));
    assert!(page.truncated && page.data.ends_with(b"123456789\nend"));
    let page = fixture.page(&id, Some(4_990), Some(5)).await;
    assert_eq!(page.data, b"12345");
    assert_eq!((page.next_offset, page.truncated), (4_995, false));
    let none = fixture.page(&id, Some(4_990), Some(0)).await;
    assert_eq!((none.next_offset, none.data.len()), (4_990, 0));
    fixture.engine.shutdown().await;
}
