use proptest::prelude::*;

use super::*;

const NONCE: &str = "5ec7e7";

fn size(cols: u16, rows: u16) -> TermSize {
    TermSize { cols, rows }
}

fn screen(cols: u16, rows: u16, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size(cols, rows), Some(NONCE));
    screen.feed(bytes);
    screen
}

/// One operation on a screen.
#[derive(Debug, Clone)]
enum Step {
    Bytes(Vec<u8>),
    Resize(TermSize),
}

/// What programs write, with every construct that this crate treats specially.
const WRITTEN: &[&str] = &[
    "abc",
    "hello world ",
    "\r\n",
    "\n",
    "\r",
    "\t",
    "\x08",
    "漢字",
    "é",
    "e\u{301}",
    "\u{301}",
    "\u{323}",
    "👨\u{200d}👩\u{200d}👧",
    "\u{200d}",
    "❤\u{fe0f}",
    "🇩🇪",
    "👍🏽",
    "\u{10e000}",
    "\u{3e000}",
    "\u{9b}1m",
    "\x7f",
    "\x1b[H",
    "\x1b[2J",
    "\x1b[3J",
    "\x1b[K",
    "\x1b[1K",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[3;2H",
    "\x1b[31m",
    "\x1b[1;4;48;5;200m",
    "\x1b[7m",
    "\x1b[m",
    "\x1b[38;2;1;2;3m",
    "\x1b7",
    "\x1b8",
    "\x1b[s",
    "\x1b[u",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?47h",
    "\x1b[?47l",
    "\x1b[?1047h",
    "\x1b[2;4r",
    "\x1b[r",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b[?7l",
    "\x1b[?7h",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[20h",
    "\x1b[2L",
    "\x1b[M",
    "\x1b[3P",
    "\x1b[2@",
    "\x1b[4X",
    "\x1b[5b",
    "\x1b[65535b",
    "\x1b[2S",
    "\x1b[T",
    "\x1bM",
    "\x1bD",
    "\x1bE",
    "\x1bH",
    "\x1b[3g",
    "\x1b[2I",
    "\x1b[Z",
    "\x1bc",
    "\x1b[!p",
    "\x1b(0",
    "\x1b(B",
    "\x1b)0",
    "\x0e",
    "\x0f",
    "\x1b#8",
    "\x1b[?2004h",
    "\x1b[?1;1002;1006h",
    "\x1b[?1000l",
    "\x1b=",
    "\x1b>",
    "\x1b[4 q",
    "\x1b]0;title\x07",
    "\x1b]2;t\u{e9}\x1b\\",
    "\x1b[22t",
    "\x1b[23;2t",
    "\x1b]133;A;ostler=5ec7e7\x07",
    "\x1b]133;C;ostler=5ec7e7\x07",
    "\x1b]133;D;3;ostler=5ec7e7\x07",
    "\x1b]7;file://h/tmp%20x\x07",
    "\x1bktitle\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1b_x\x1b\\",
    // Incomplete sequences.
    "\x1b",
    "\x1b[",
    "\x1b[3",
    "\x1b[?4",
    "\x1b[1;3",
    "\x1b]2;ti",
    "\x1bP1;2",
    "\x1b(",
    "\x1b[1 ",
    "\x1b[3<",
    "\x1b]2;x\x1b",
];

/// Bytes as programs write them, some incomplete.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::sample::select(WRITTEN);
    prop_oneof![
        8 => whole.prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 1..6),
        1 => prop::sample::select(vec![
            b"\xf0\x9f\x98".to_vec(), b"\x80".to_vec(), b"\xcc".to_vec(), b"\xff".to_vec(),
        ]),
    ]
}

fn sizes() -> impl Strategy<Value = TermSize> {
    prop_oneof![
        4 => (1u16..14, 1u16..8).prop_map(|(cols, rows)| size(cols, rows)),
        1 => prop::sample::select(vec![size(1, 1), size(80, 24), size(2, 1)]),
    ]
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        9 => bytes().prop_map(Step::Bytes),
        1 => sizes().prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 0..most)
}

fn take(screen: &mut Screen, step: &Step) {
    match step {
        Step::Bytes(bytes) => screen.feed(bytes),
        Step::Resize(size) => screen.resize(*size),
    }
}

/// Everything that is visible of a screen, now or later.
fn seen(screen: &Screen) -> (ScreenSnapshot, String, ShellState) {
    let painting = String::from_utf8_lossy(&screen.repaint()).into_owned();
    (screen.snapshot(), painting, screen.shell().clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_restored_screen_goes_on_as_the_one_it_was_made_of(
        at in sizes(), before in steps(40), after in steps(20),
    ) {
        let mut original = Screen::new(at, Some(NONCE));
        for step in &before {
            take(&mut original, step);
        }
        let json = serde_json::to_string(&original.checkpoint()).unwrap();
        let checkpoint: Checkpoint = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&checkpoint, &original.checkpoint());
        let mut restored = Screen::restore(&checkpoint, Some(NONCE)).unwrap();
        prop_assert_eq!(seen(&restored), seen(&original));
        for step in &after {
            take(&mut original, step);
            take(&mut restored, step);
            prop_assert_eq!(seen(&restored), seen(&original));
        }
    }

    #[test]
    fn cuts_change_nothing(
        at in sizes(),
        parts in prop::collection::vec(bytes(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = parts.concat();
        let whole = {
            let mut screen = Screen::new(at, Some(NONCE));
            screen.feed(&bytes);
            screen
        };
        let mut at_once: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at_once.extend([0, bytes.len()]);
        at_once.sort_unstable();
        let every: Vec<usize> = (0..=bytes.len()).collect();
        for cuts in [at_once, every] {
            let mut screen = Screen::new(at, Some(NONCE));
            for cut in cuts.windows(2) {
                screen.feed(&bytes[cut[0]..cut[1]]);
            }
            prop_assert_eq!(seen(&screen), seen(&whole));
            prop_assert_eq!(screen.checkpoint(), whole.checkpoint());
        }
    }

    #[test]
    fn a_view_has_the_shape_it_says(at in sizes(), steps in steps(40)) {
        let mut screen = Screen::new(at, None);
        for step in &steps {
            take(&mut screen, step);
        }
        let view = screen.snapshot();
        prop_assert_eq!(view.rows.len(), usize::from(view.size.rows));
        prop_assert!(view.cursor.col < view.size.cols && view.cursor.row < view.size.rows);
        for row in &view.rows {
            prop_assert!(!row.contains(|c: char| c.is_control()), "{row:?}");
            prop_assert!(!row.contains(['\u{10e000}', '\u{3e000}']), "{row:?}");
        }
    }

    #[test]
    fn a_repainted_terminal_shows_the_same(at in sizes(), steps in steps(30)) {
        let mut screen = Screen::new(at, None);
        for step in &steps {
            take(&mut screen, step);
        }
        let mut other = Screen::new(screen.snapshot().size, None);
        other.feed(b"\x1b[?1049h\x1b[5;1Hleft over\x1b[2;3r\x1b[?6h\x1b[4h\x1b[31m\x1b[?1003h\x0e");
        other.feed(&screen.repaint());
        let (mine, theirs) = (screen.snapshot(), other.snapshot());
        // A joiner that joins nothing is left out: it would join what is painted next.
        let visible = |view: &ScreenSnapshot| -> Vec<String> {
            let rows = view.rows.iter().map(|row| row.replace('\u{200d}', ""));
            rows.map(|row| row.trim_end().to_owned()).collect()
        };
        prop_assert_eq!(visible(&mine), visible(&theirs));
        prop_assert_eq!(mine.cursor, theirs.cursor);
        prop_assert_eq!(mine.modes, theirs.modes);
        prop_assert_eq!(mine.alternate, theirs.alternate);
        prop_assert_eq!(mine.title.is_empty() || mine.title == theirs.title, true);
    }

    #[test]
    fn random_bytes_never_panic(
        at in prop_oneof![15 => sizes(), 1 => Just(size(500, 500))],
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let mut screen = Screen::new(at, None);
        screen.feed(&bytes);
        prop_assert_eq!(screen.offset(), bytes.len() as u64);
        let restored = Screen::restore(&screen.checkpoint(), None).unwrap();
        prop_assert_eq!(restored.snapshot(), screen.snapshot());
    }
}

#[test]
fn a_size_is_cut_to_what_a_screen_can_have() {
    let mut screen = screen(0, 0, b"abc");
    assert_eq!(screen.snapshot().size, size(1, 1));
    screen.resize(size(u16::MAX, u16::MAX));
    assert_eq!(
        screen.snapshot().size,
        size(TermSize::COLS_MAX, TermSize::ROWS_MAX)
    );
    screen.feed(b"x\x1b#8\x1b[2J");
    assert_eq!(screen.snapshot().text(), "");
}

#[test]
fn a_checkpoint_that_cannot_be_one_is_refused() {
    let mut checkpoint = screen(10, 2, b"abc").checkpoint();
    checkpoint.version = 9;
    assert_eq!(
        Screen::restore(&checkpoint, None).unwrap_err(),
        CheckpointError::Version(9)
    );
    checkpoint.version = CHECKPOINT_VERSION;
    checkpoint.size = size(0, 2);
    assert_eq!(
        Screen::restore(&checkpoint, None).unwrap_err(),
        CheckpointError::Size { cols: 0, rows: 2 }
    );
    checkpoint.size = size(u16::MAX, u16::MAX);
    assert!(Screen::restore(&checkpoint, None).is_err());
}

#[test]
fn dropped_bytes_make_a_screen_inexact() {
    let mut screen = screen(20, 2, b"abc\x1b[3");
    screen.skip_to(7);
    assert_eq!((screen.offset(), screen.is_exact()), (7, false));
    screen.feed(b"mx");
    assert_eq!(screen.snapshot().rows[0], "abcmx");
    let restored = Screen::restore(&screen.checkpoint(), None).unwrap();
    assert!(!restored.is_exact());
}

#[test]
fn nothing_dropped_leaves_it_exact() {
    let mut screen = screen(20, 2, b"abc\x1b[3");
    screen.skip_to(screen.offset());
    screen.feed(b"1mx");
    assert_eq!(screen.snapshot().rows[0], "abcx");
    assert!(screen.is_exact());
}

/// As in tmux 3.3a, compared by hand.
#[test]
fn rows_that_scrolled_off_come_back_when_it_grows() {
    let lines: String = (0..30).map(|n| format!("line {n}\r\n")).collect();
    let text = format!("{lines}$ ");
    for restored in [false, true] {
        let mut screen = screen(40, 5, text.as_bytes());
        if restored {
            screen = Screen::restore(&screen.checkpoint(), None).unwrap();
        }
        screen.resize(size(40, 12));
        let view = screen.snapshot();
        assert_eq!(
            (view.rows[0].as_str(), view.rows[10].as_str()),
            ("line 19", "line 29")
        );
        assert_eq!((view.cursor.col, view.cursor.row), (2, 11));
        screen.resize(size(3, 12));
        screen.resize(size(40, 12));
        assert_eq!(screen.snapshot().rows, view.rows);
    }
    // What was cleared does not come back.
    for restored in [false, true] {
        let mut screen = screen(40, 5, format!("{text}\x1b[H\x1b[2J\x1b[3J$ ").as_bytes());
        if restored {
            screen = Screen::restore(&screen.checkpoint(), None).unwrap();
        }
        screen.resize(size(40, 12));
        assert_eq!(screen.snapshot().text(), "$\n");
    }
}

#[test]
fn the_alternate_screen_gives_the_primary_back() {
    let mut screen = screen(20, 3, b"$ vim\r\n\x1b[?1049h\x1b[Hfile");
    let view = screen.snapshot();
    assert_eq!((view.rows[0].as_str(), view.alternate), ("file", true));
    screen.feed(b"\x1b[?1049l$ ");
    let view = screen.snapshot();
    assert_eq!(
        (view.text().as_str(), view.alternate),
        ("$ vim\n$\n", false)
    );
    assert_eq!((view.cursor.col, view.cursor.row), (2, 1));
}

#[test]
fn incomplete_sequences_take_bounded_memory() {
    for start in ["\x1b]2;", "\x1bP", "\x1b[", "\x1b[?", "\x1b[1 ", "\x1b_"] {
        let mut screen = screen(20, 2, start.as_bytes());
        for _ in 0..200 {
            screen.feed("1;".repeat(1000).as_bytes());
        }
        let checkpoint = serde_json::to_string(&screen.checkpoint()).unwrap();
        assert!(
            checkpoint.len() < 64 * 1024,
            "{start:?}: {}",
            checkpoint.len()
        );
        let mut restored = Screen::restore(&screen.checkpoint(), None).unwrap();
        for screen in [&mut screen, &mut restored] {
            screen.feed(b"m\x18after");
            assert_eq!(screen.snapshot().title, "");
            assert!(screen.snapshot().rows[0].ends_with("after"), "{start:?}");
        }
    }
}

#[test]
fn a_jail_takes_a_bounded_number_of_marks() {
    let zalgo = format!("x{}y", "\u{301}".repeat(10_000));
    let view = screen(20, 2, zalgo.as_bytes()).snapshot();
    assert!(view.rows[0].len() <= crate::graphemes::CLUSTER_BYTES + 1);
    assert!(view.rows[0].ends_with('y'));
    assert_eq!(view.cursor.col, 2);
}

#[test]
fn more_clusters_than_are_kept_leave_out_marks_only() {
    // Every cell of the screen has a cluster of its own.
    let (cols, rows) = (100, 100);
    let mut text = String::new();
    for n in 0..u32::from(cols) * u32::from(rows) {
        text.extend(char::from_u32(0x4E00 + n / 50));
        text.extend(char::from_u32(0x300 + n % 50));
    }
    let screen = screen(cols * 2, rows, text.as_bytes());
    let shown = screen.snapshot().text().replace('\n', "");
    let bases = |text: &str| text.chars().filter(|c| *c >= '\u{4e00}').count();
    assert_eq!(bases(&shown), bases(&text));
    assert!(!shown.contains('\u{fffd}'));
    let restored = Screen::restore(&screen.checkpoint(), None).unwrap();
    assert_eq!(restored.snapshot(), screen.snapshot());
}

#[test]
fn clusters_that_scrolled_away_make_room() {
    let mut screen = screen(20, 3, b"");
    for n in 0..3 * u32::from(crate::graphemes::CLUSTERS_MAX) {
        let base = char::from_u32(0x4E00 + n).unwrap_or('x');
        screen.feed(format!("\r\n{base}\u{301}").as_bytes());
        let view = screen.snapshot();
        assert_eq!(
            view.rows[usize::from(view.cursor.row)],
            format!("{base}\u{301}")
        );
    }
}

#[test]
fn a_character_that_we_use_ourselves_is_no_cluster() {
    let view = screen(20, 2, "e\u{301}\u{10e000}\u{3e000}z".as_bytes()).snapshot();
    assert_eq!(view.rows[0], "e\u{301}\u{fffd}\u{fffd}z");
    assert_eq!(view.cursor.col, 4);
}

#[test]
fn text_is_the_rows_without_blank_ones_at_the_end() {
    assert_eq!(
        screen(10, 4, b"a  \r\n\r\nb\r\n").snapshot().text(),
        "a\n\nb\n"
    );
    assert_eq!(screen(10, 4, b"").snapshot().text(), "");
}
