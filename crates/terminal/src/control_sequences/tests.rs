use ostler_escape::SEQUENCE_BYTES;

use super::*;

fn marks(bytes: &[u8]) -> Vec<LocatedEvent> {
    Scanner::new(100, Some("s3cret")).feed(bytes)
}

fn only(bytes: &[u8]) -> ControlEvent {
    let mut marks = marks(bytes);
    assert_eq!(marks.len(), 1, "{:?}", String::from_utf8_lossy(bytes));
    marks.remove(0).event
}

#[test]
fn marks_have_the_offsets_of_their_sequences() {
    let events = marks(b"ab\x1b]133;C;ostler=s3cret\x07out\x1b]133;D;0;ostler=s3cret\x1b\\$");
    let places: Vec<(u64, u64)> = events.iter().map(|m| (m.from, m.to)).collect();
    assert_eq!(places, [(102, 124), (127, 152)]);
    assert_eq!(
        events[0].event,
        ControlEvent::CommandStart { is_trusted: true }
    );
    let ended = ControlEvent::CommandEnd {
        is_trusted: true,
        status: Some(0),
    };
    assert_eq!(events[1].event, ended);
}

#[test]
fn only_the_nonce_is_believed() {
    let believed = |bytes: &[u8]| only(bytes) == ControlEvent::PromptEnd { is_trusted: true };
    assert!(believed(b"\x1b]133;B;ostler=s3cret\x07"));
    assert!(believed(b"\x1b]133;B;aid=1;ostler=s3cret\x07"));
    assert!(!believed(b"\x1b]133;B\x07"));
    assert!(!believed(b"\x1b]133;B;ostler=\x07"));
    assert!(!believed(b"\x1b]133;B;ostler=s3cre\x07"));
    assert!(!believed(b"\x1b]133;B;ostler=s3crets\x07"));
    for nonce in [None, Some("")] {
        let events = Scanner::new(0, nonce).feed(b"\x1b]133;B;ostler=\x07");
        assert_eq!(
            events[0].event,
            ControlEvent::PromptEnd { is_trusted: false }
        );
    }
}

#[test]
fn prompts_and_statuses_are_reported() {
    let prompt = |continuation| ControlEvent::PromptStart {
        is_trusted: false,
        continuation,
    };
    assert_eq!(only(b"\x1b]133;A\x07"), prompt(false));
    assert_eq!(only(b"\x1b]133;A;k=s\x07"), prompt(true));
    let ended = |status| ControlEvent::CommandEnd {
        is_trusted: false,
        status,
    };
    assert_eq!(only(b"\x1b]133;D\x07"), ended(None));
    assert_eq!(only(b"\x1b]133;D;130;x\x07"), ended(Some(130)));
    assert_eq!(only(b"\x1b]133;D;err=1\x07"), ended(None));
    assert_eq!(only(b"\x1b]133;D;99999999999\x07"), ended(None));
    assert!(marks(b"\x1b]133;Z\x07\x1b]133\x07\x1b]1337;A\x07").is_empty());
}

#[test]
fn directories_are_decoded() {
    let table: [(&[u8], Option<&[u8]>); 8] = [
        (b"file://host/tmp/a%20b", Some(b"/tmp/a b")),
        (b"file:///home/%C3%A9", Some("/home/é".as_bytes())),
        (b"file://h/%ff", Some(b"/\xff")),
        (b"file://h/100%", Some(b"/100%")),
        (b"file://h/%zz%4", Some(b"/%zz%4")),
        (b"file://h/a%00b", None),
        (b"file://host", None),
        (b"http://h/x", None),
    ];
    for (url, path) in table {
        let events = marks(&[b"\x1b]7;", url, b"\x07"].concat());
        let path = path.map(|path| ControlEvent::Directory(path.to_vec()));
        assert_eq!(events.into_iter().map(|m| m.event).next(), path);
    }
}

#[test]
fn titles_are_clean_and_bounded() {
    let title = |text: &str| ControlEvent::Title(text.to_owned());
    assert_eq!(only(b"\x1b]0;vim\x07"), title("vim"));
    assert_eq!(only(b"\x1b]2;a;b\x1b\\"), title("a;b"));
    assert_eq!(only("\x1b]2;a\u{8}\u{85}é\x07".as_bytes()), title("aé"));
    assert_eq!(only(b"\x1b]2;\xff\x07"), title("\u{fffd}"));
    assert_eq!(only(b"\x1b]2;\x07"), title(""));
    assert!(marks(b"\x1b]1;icon\x07").is_empty());
    let long = format!("\x1b]2;{}\x07", "é".repeat(TITLE_BYTES));
    let ControlEvent::Title(kept) = only(long.as_bytes()) else {
        panic!("no title");
    };
    assert_eq!(kept.len(), TITLE_BYTES);
}

#[test]
fn titles_are_put_aside_and_given_back() {
    let events = marks(b"\x1b]2;sh\x07\x1b[22;0;0t\x1b]2;vim\x07\x1b[23;0;0t\x1b[23t");
    let titles: Vec<_> = events.into_iter().map(|m| m.event).collect();
    let title = |text: &str| ControlEvent::Title(text.to_owned());
    assert_eq!(titles, [title("sh"), title("vim"), title("sh")]);
    let mut scanner = Scanner::new(0, None);
    scanner.feed(&b"\x1b[22t".repeat(10_000));
    assert_eq!(scanner.terminal.titles.len(), TITLES_MAX);
}

#[test]
fn modes_are_reported_when_they_change() {
    let mut scanner = Scanner::new(0, None);
    let mut changed = |bytes: &[u8]| {
        let marks = scanner.feed(bytes);
        assert!(marks.len() <= 1);
        marks.into_iter().next().map(|marked| marked.event)
    };
    let none = Modes::default();
    let paste = Modes {
        bracketed_paste: true,
        ..none
    };
    assert_eq!(changed(b"\x1b[?2004h"), Some(ControlEvent::Modes(paste)));
    assert_eq!(changed(b"\x1b[?2004h"), None);
    assert_eq!(changed(b"\x1b[?2004l"), Some(ControlEvent::Modes(none)));
    let vim = Modes {
        application_cursor: true,
        mouse: true,
        ..none
    };
    assert_eq!(
        changed(b"\x1b[?1;1002;1006h"),
        Some(ControlEvent::Modes(vim))
    );
    let keypad = Modes {
        application_keypad: true,
        ..vim
    };
    assert_eq!(changed(b"\x1b="), Some(ControlEvent::Modes(keypad)));
    // Resetting any of the mouse modes turns the mouse off.
    let mouseless = Modes {
        mouse: false,
        ..keypad
    };
    assert_eq!(
        changed(b"\x1b[?1000l"),
        Some(ControlEvent::Modes(mouseless))
    );
    assert_eq!(changed(b"\x1b[!p"), Some(ControlEvent::Modes(none)));
    assert_eq!(changed(b"\x1b[?2004h"), Some(ControlEvent::Modes(paste)));
    assert_eq!(changed(b"\x1bc"), Some(ControlEvent::Modes(none)));
    // Mode requests (DECRQM) and ANSI modes change nothing.
    assert_eq!(changed(b"\x1b[?2004$p"), None);
    assert_eq!(changed(b"\x1b[1h\x1b[>1h\x1b[?1;2c"), None);
}

#[test]
fn what_looks_like_a_mark_inside_a_string_is_none() {
    assert!(marks(b"\x1bPtmux;]133;A\x07\x1b\\").is_empty());
    assert!(marks(b"\x1b_]2;x\x07\x1b\\").is_empty());
    assert!(marks(b"]133;A\x07").is_empty());
    assert!(marks(b"\x1b]2;broken\x18off\x07").is_empty());
    assert!(marks(b"\x1b]2;broken\x1b[31moff\x07").is_empty());
    assert_eq!(
        only(b"\x1b]2;broken\x1b]2;whole\x07"),
        ControlEvent::Title("whole".to_owned())
    );
}

#[test]
fn a_long_sequence_is_passed_over_in_bounded_memory() {
    let mut scanner = Scanner::new(0, None);
    scanner.feed(b"\x1b]2;");
    for _ in 0..100 {
        scanner.feed(&[b'x'; 1000]);
        let stored = serde_json::to_vec(&scanner.state()).unwrap();
        assert!(stored.len() < 5 * SEQUENCE_BYTES);
    }
    let events = scanner.feed(b"\x07\x1b]2;next\x07");
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].from, events[0].to), (100_005, 100_014));
}

#[test]
fn cuts_change_no_offset() {
    let bytes = b"a\x1b[?1;2004hb\x1b]133;A;ostler=s3cret\x1b\\$ \x1b]2;x\x1b\x1b]2;t\x07\x1b[22t\
        \x1bPx\x1b\\\x1b(0\x1b]7;file://h/%41\x07\x1b=\x1b[3 q\x1b[!p\x1b[23t";
    let whole = marks(bytes);
    assert!(whole.len() >= 6);
    for cut in 0..bytes.len() {
        let mut scanner = Scanner::new(100, Some("s3cret"));
        let mut events = scanner.feed(&bytes[..cut]);
        let state = serde_json::to_string(&scanner.state()).unwrap();
        let state = serde_json::from_str(&state).unwrap();
        let mut restored = Scanner::restore(scanner.offset(), Some("s3cret"), state);
        events.extend(restored.feed(&bytes[cut..]));
        assert_eq!(events, whole, "cut at {cut}");
    }
}

#[test]
fn the_nonce_is_not_shown() {
    let scanner = Scanner::new(0, Some("s3cret"));
    assert!(!format!("{scanner:?}").contains("s3cret"));
}

#[test]
fn stored_states_keep_their_form() {
    let stored = |bytes: &[u8]| {
        let mut scanner = Scanner::new(100, None);
        scanner.feed(bytes);
        serde_json::to_string(&scanner.state()).unwrap()
    };
    let modes = r#""private":[2004],"cursor_shape":3,"title":"t""#;
    for (end, state) in [
        ("x", r#""place":"text","from":116,"overlong":false"#),
        ("\x1b", r#""place":"escape","from":121,"overlong":false"#),
        (
            "\x1b(",
            r#""place":"escape_more","from":121,"overlong":false"#,
        ),
        (
            "\x1b[?1",
            r#""place":"control","from":121,"pending":[63,49],"overlong":false"#,
        ),
        (
            "\x1b]2",
            r#""place":"osc","from":121,"pending":[50],"overlong":false"#,
        ),
        (
            "\x1b]2\x1b",
            r#""place":"osc_escape","from":121,"pending":[50],"overlong":false"#,
        ),
        ("\x1bPx", r#""place":"other","from":121,"overlong":false"#),
    ] {
        let text = stored(format!("\x1b[?2004h\x1b]2;t\x07..\x1b[3 q{end}").as_bytes());
        assert_eq!(text, format!("{{{state},{modes}}}"), "{end:?}");
        let state = serde_json::from_str(&text).unwrap();
        let restored = Scanner::restore(200, None, state);
        assert_eq!(serde_json::to_string(&restored.state()).unwrap(), text);
    }
    let modified = r#"{"place":"osc","from":900,"pending":[50,7,27,91,27]}"#;
    let restored = Scanner::restore(200, None, serde_json::from_str(modified).unwrap());
    assert!(serde_json::to_string(&restored.state()).is_ok());
}
