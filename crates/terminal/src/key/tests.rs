use super::*;

fn key(name: &str) -> Key {
    name.parse()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn names_are_read_in_any_case_and_written_in_one_way() {
    let table = [
        ("enter", "enter"),
        ("Enter", "enter"),
        ("RETURN", "enter"),
        ("cr", "enter"),
        ("esc", "escape"),
        ("bs", "backspace"),
        ("BSpace", "backspace"),
        ("del", "delete"),
        ("pgup", "pageup"),
        ("Page-Up", "pageup"),
        ("page_down", "pagedown"),
        ("PgDn", "pagedown"),
        ("F5", "f5"),
        ("ctrl-c", "ctrl-c"),
        ("Ctrl+C", "ctrl-c"),
        ("C-c", "ctrl-c"),
        ("^C", "ctrl-c"),
        ("^[", "ctrl-["),
        ("ctrl-\\", "ctrl-\\"),
        ("M-x", "alt-x"),
        ("alt-X", "alt-X"),
        ("shift-g", "G"),
        ("G", "G"),
        ("meta-left", "alt-left"),
        ("shift-ctrl-right", "ctrl-shift-right"),
        ("ctrl-alt-delete", "ctrl-alt-delete"),
        ("S-Tab", "shift-tab"),
        ("ctrl-space", "ctrl-space"),
        ("ctrl--", ""),
        ("-", "-"),
        ("+", "+"),
        ("alt--", "alt--"),
        ("alt-+", "alt-+"),
        ("^", "^"),
        ("é", "é"),
        (" ", "space"),
        ("\r", "enter"),
    ];
    for (given, written) in table {
        match given.parse::<Key>() {
            Ok(key) => assert_eq!(key.to_string(), written, "{given}"),
            Err(_) => assert_eq!(written, "", "{given}"),
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    let names = NAMES.iter().map(|(name, _)| (*name).to_owned());
    let functions = (1..=F_MAX).map(|n| format!("f{n}"));
    for name in names.chain(functions) {
        for prefix in ["", "ctrl-", "alt-", "shift-", "ctrl-alt-shift-"] {
            let Ok(parsed) = format!("{prefix}{name}").parse::<Key>() else {
                assert!(prefix.len() > 3, "{prefix}{name}");
                continue;
            };
            assert_eq!(key(&parsed.to_string()), parsed);
            let json = serde_json::to_string(&parsed).unwrap();
            assert_eq!(serde_json::from_str::<Key>(&json).unwrap(), parsed);
        }
    }
}

#[test]
fn a_typo_gets_a_suggestion() {
    let table = [
        ("entr", Some("enter")),
        ("retrun", Some("enter")),
        ("backspce", Some("backspace")),
        ("ctrl-pagdown", Some("ctrl-pagedown")),
        ("crtl-left", Some("ctrl-left")),
        ("f21", Some("f1")),
        ("hyper", None),
        ("", None),
        ("this is no key at all", None),
    ];
    for (given, meant) in table {
        let Err(KeyError::Unknown { suggestion, .. }) = given.parse::<Key>() else {
            panic!("{given} is a key");
        };
        match meant {
            Some(_) if given.starts_with('f') => assert!(suggestion.is_some(), "{given}"),
            meant => assert_eq!(suggestion.as_deref(), meant, "{given}"),
        }
    }
    let message = "entr".parse::<Key>().unwrap_err().to_string();
    assert!(message.contains("did you mean 'enter'?"), "{message}");
    assert!(
        message.contains("pagedown") && message.contains("f1-f20"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_sent_is_refused() {
    for name in ["ctrl-ö", "ctrl-1", "shift-1", "ctrl-;", "shift-ß"] {
        assert!(
            matches!(name.parse::<Key>(), Err(KeyError::Unsendable { .. })),
            "{name}"
        );
    }
}

#[test]
fn a_long_name_is_cut_in_the_error() {
    let Err(KeyError::Unknown { given, .. }) = "x".repeat(100_000).parse::<Key>() else {
        panic!("it is a key");
    };
    assert_eq!(given.len(), NAME_BYTES);
}
