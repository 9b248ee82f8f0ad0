use super::*;

const NORMAL: Modes = Modes {
    bracketed_paste: false,
    application_cursor: false,
    application_keypad: false,
    mouse: false,
};

const APPLICATION: Modes = Modes {
    application_cursor: true,
    ..NORMAL
};

const BRACKETED: Modes = Modes {
    bracketed_paste: true,
    ..NORMAL
};

fn sent(name: &str, modes: Modes) -> String {
    let key = InputPiece::Key(name.parse().unwrap());
    String::from_utf8(encode(&[key], modes)).unwrap()
}

#[test]
fn keys_are_sent_as_xterm_sends_them() {
    let table = [
        ("enter", "\r"),
        ("tab", "\t"),
        ("shift-tab", "\x1b[Z"),
        ("escape", "\x1b"),
        ("space", " "),
        ("backspace", "\x7f"),
        ("ctrl-backspace", "\x08"),
        ("alt-backspace", "\x1b\x7f"),
        ("delete", "\x1b[3~"),
        ("ctrl-delete", "\x1b[3;5~"),
        ("insert", "\x1b[2~"),
        ("up", "\x1b[A"),
        ("down", "\x1b[B"),
        ("right", "\x1b[C"),
        ("left", "\x1b[D"),
        ("shift-up", "\x1b[1;2A"),
        ("alt-left", "\x1b[1;3D"),
        ("ctrl-right", "\x1b[1;5C"),
        ("ctrl-alt-shift-down", "\x1b[1;8B"),
        ("home", "\x1b[H"),
        ("end", "\x1b[F"),
        ("ctrl-end", "\x1b[1;5F"),
        ("pageup", "\x1b[5~"),
        ("shift-pagedown", "\x1b[6;2~"),
        ("f1", "\x1bOP"),
        ("f4", "\x1bOS"),
        ("ctrl-f1", "\x1b[1;5P"),
        ("f5", "\x1b[15~"),
        ("f10", "\x1b[21~"),
        ("f11", "\x1b[23~"),
        ("f12", "\x1b[24~"),
        ("alt-f12", "\x1b[24;3~"),
        ("f13", "\x1b[1;2P"),
        ("f20", "\x1b[19;2~"),
        ("ctrl-a", "\x01"),
        ("ctrl-z", "\x1a"),
        ("ctrl-space", "\0"),
        ("ctrl-@", "\0"),
        ("ctrl-[", "\x1b"),
        ("ctrl-\\", "\x1c"),
        ("ctrl-]", "\x1d"),
        ("ctrl-^", "\x1e"),
        ("ctrl-_", "\x1f"),
        ("ctrl-?", "\x7f"),
        ("alt-x", "\x1bx"),
        ("alt-X", "\x1bX"),
        ("ctrl-alt-x", "\x1b\x18"),
        ("alt-enter", "\x1b\r"),
        ("alt-é", "\x1bé"),
        ("é", "é"),
    ];
    for (name, bytes) in table {
        assert_eq!(sent(name, NORMAL), bytes, "{name}");
    }
}

#[test]
fn cursor_keys_obey_decckm_without_modifiers_only() {
    assert_eq!(sent("up", APPLICATION), "\x1bOA");
    assert_eq!(sent("home", APPLICATION), "\x1bOH");
    assert_eq!(sent("ctrl-up", APPLICATION), "\x1b[1;5A");
    assert_eq!(sent("delete", APPLICATION), "\x1b[3~");
}

#[test]
fn newlines_are_typed_as_enter() {
    let typed = encode(&[InputPiece::Text("a\nb\r\nc\rd\n".to_owned())], NORMAL);
    assert_eq!(typed, b"a\rb\rc\rd\r");
}

#[test]
fn a_paste_stands_between_marks_and_cannot_break_out() {
    let paste = |text: &str, modes| {
        String::from_utf8(encode(&[InputPiece::Paste(text.to_owned())], modes)).unwrap()
    };
    assert_eq!(paste("a\n\tb", BRACKETED), "\x1b[200~a\r\tb\x1b[201~");
    assert_eq!(paste("a\nb", NORMAL), "a\rb");
    assert_eq!(
        paste("x\x1b[201~rm\u{9b}201~\x03", BRACKETED),
        "\x1b[200~x[201~rm201~\x1b[201~"
    );
}

#[test]
fn raw_bytes_go_as_they_are() {
    let raw = vec![0, 255, b'\n', 0x1b];
    assert_eq!(encode(&[InputPiece::Raw(raw.clone())], BRACKETED), raw);
}
