use super::*;

fn fed(cols: u16, rows: u16, text: &str) -> Avt {
    let mut avt = Avt::new(TermSize { cols, rows });
    avt.feed(text);
    avt
}

fn shown(text: &str) -> (Vec<String>, u16, u16) {
    let avt = fed(80, 4, text);
    let mut rows = avt.rows();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    let (col, row, _) = avt.cursor();
    (rows, col, row)
}

/// What tmux 3.3a shows in 80 columns and 4 rows, and the column of its cursor: compared by
/// hand, with `tmux -u` under glibc's C.UTF-8.
const AS_TMUX: &[(&str, &str, u16)] = &[
    // Combining marks are added to the cell before the cursor.
    ("xe\u{301}y", "xe\u{301}y", 3),
    ("xe\u{301}\u{323}y", "xe\u{301}\u{323}y", 3),
    ("\u{301}ab", "ab", 2),
    ("x漢y", "x漢y", 4),
    ("x漢\u{301}y", "x漢\u{301}y", 4),
    ("abc\u{1b}[2D\u{301}", "a\u{301}bc", 1),
    ("abc\r\u{301}d", "dbc", 1),
    ("xe\u{200c}y", "xe\u{200c}y", 3),
    ("x\u{200b}y", "x\u{200b}y", 2),
    ("x\u{200e}y", "x\u{200e}y", 2),
    ("x\u{2060}y", "x\u{2060}y", 2),
    ("x\u{feff}y", "x\u{feff}y", 2),
    ("x\u{ad}y", "x\u{ad}y", 3),
    ("abc\u{1b}[1;2H\u{1b}[4he\u{301}\u{1b}[4l", "ae\u{301}bc", 2),
    // Emoji: a joined family is one cell; flags and skin tones are two.
    ("x😀y", "x😀y", 4),
    ("x👨\u{200d}👩\u{200d}👧y", "x👨\u{200d}👩\u{200d}👧y", 4),
    ("x👍🏽y", "x👍🏽y", 6),
    ("x🇩🇪y", "x🇩🇪y", 4),
    ("x🇩🇪🇫🇷y", "x🇩🇪🇫🇷y", 6),
    ("x❤\u{fe0f}y", "x❤\u{fe0f}y", 3),
    ("x❤\u{fe0e}y", "x❤\u{fe0e}y", 3),
    ("x1\u{fe0f}\u{20e3}y", "x1\u{fe0f}\u{20e3}y", 3),
    ("x🏳\u{fe0f}\u{200d}🌈y", "x🏳\u{fe0f}\u{200d}🌈y", 3),
    ("x\u{200d}👩y", "x\u{200d}👩y", 2),
    ("x☔y", "x☔y", 4),
    ("x☀y", "x☀y", 3),
    ("x⌛y", "x⌛y", 4),
    ("x™\u{fe0f}y", "x™\u{fe0f}y", 3),
    // Scripts.
    (
        "x\u{1112}\u{1161}\u{11ab}y",
        "x\u{1112}\u{1161}\u{11ab}y",
        4,
    ),
    ("x\u{e01}\u{e33}y", "x\u{e01}\u{e33}y", 4),
    ("xｶﾞy", "xｶﾞy", 4),
    ("x…—°y", "x…—°y", 5),
    ("x\u{e0b0}y\u{f0001}z", "x\u{e0b0}y\u{f0001}z", 5),
    (
        "x\u{915}\u{94d}\u{937}\u{93f}y",
        "x\u{915}\u{94d}\u{937}\u{93f}y",
        5,
    ),
    ("x\u{b95}\u{bbe}y", "x\u{b95}\u{bbe}y", 4),
    ("x\u{d15}\u{d3e}y", "x\u{d15}\u{d3e}y", 4),
    // Controls.
    ("x\u{9b}31my", "x31my", 5),
    ("x\u{85}y", "xy", 2),
    ("x\u{7f}y", "xy", 2),
    ("x\u{1b}ktitle\u{1b}\\y", "xy", 2),
    ("main\u{1b}[?47halt", "    alt", 7),
    ("ab\u{1b}[5b", "abbbbbb", 7),
    ("abc\u{1b}[0;0HX", "Xbc", 1),
    ("abcdef\u{1b}[1;2H\u{1b}[3X", "a   ef", 1),
    ("abc\u{1b}[1;2H\u{1b}[4h漢\u{1b}[4l", "a漢bc", 3),
];

#[test]
fn text_is_shown_as_tmux_shows_it() {
    for (given, row, col) in AS_TMUX {
        let (rows, at, _) = shown(given);
        assert_eq!((rows.join("|").as_str(), at), (*row, *col), "{given:?}");
    }
}

#[test]
fn erasing_leaves_the_background_alone() {
    for (given, erased) in [
        ("\x1b[7;4;44m\x1b[K", (0, 5)),
        ("\x1b[7;4;9;44m\x1b[2J", (2, 0)),
        ("\x1b[7m\x1b[3;1H\n", (2, 0)),
        ("ab\x1b[H\x1b[9m\x1b[@", (0, 0)),
        ("\x1b[7m\x1b[?1049h", (1, 1)),
        ("\x1b[4m\x1b7\x1b[m\x1b8\x1b[J", (1, 1)),
    ] {
        let mut avt = fed(10, 3, given);
        let pen = |avt: &Avt, (row, col): (usize, usize)| {
            let screen = avt.terminal.screen();
            *screen.line(row).unwrap().cells()[col].pen()
        };
        let blank = pen(&avt, erased);
        assert!(!blank.is_inverse() && !blank.is_underline(), "{given:?}");
        assert!(!blank.is_strikethrough(), "{given:?}");
        assert_eq!(blank.background().is_some(), given.contains("44"));
        // The pen is unchanged.
        avt.feed("\x1b[Hx");
        let printed = pen(&avt, (0, 0));
        assert!(printed.is_inverse() || printed.is_underline() || printed.is_strikethrough());
    }
}

#[test]
fn the_pen_saved_with_the_cursor_comes_back_from_the_alternate_screen() {
    let avt = fed(10, 3, "\x1b[7m\x1b[?1049h\x1b[m\x1b[?1049lx");
    let screen = avt.terminal.screen();
    assert!(screen.line(0).unwrap().cells()[0].pen().is_inverse());
    assert!(avt.sgr.shows_on_erase());
}
