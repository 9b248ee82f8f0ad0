//! Escaping of untrusted text for people: every character that a terminal would interpret, or for
//! which it would show nothing, is written as an escape such as `\r` or `\u{202e}`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The length of the longest colour sequence in bytes.
const COLOUR_BYTES: usize = 64;
/// The SGR sequence that resets all attributes.
const RESET: &str = "\x1b[0m";

/// What happens to the colours in the output of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourMode {
    /// They are kept; at its end each line resets what it has set.
    Keep,
    /// They are removed.
    Strip,
    /// They are escaped like every other control sequence.
    Escape,
}

/// Escapes the text for one line. Where something had to be escaped, backslashes are doubled, so
/// that no escape is ambiguous; everything else stays as it is.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape_hidden(text, |_| false)
}

/// As [`visible()`], with line ends kept.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escape_hidden(text, |c| c == '\n')
}

/// Whether [`visible()`] would escape something.
#[must_use]
pub fn has_hidden(text: &str) -> bool {
    hidden_chars(text).next().is_some()
}

fn escape_hidden(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if hidden_chars(text).all(|(_, c)| is_kept(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = 0;
    for (at, c) in hidden_chars(text).filter(|(_, c)| !is_kept(*c)) {
        out.push_str(&text[rest..at].replace('\\', r"\\"));
        push_escaped(&mut out, c);
        rest = at + c.len_utf8();
    }
    out.push_str(&text[rest..].replace('\\', r"\\"));
    Cow::Owned(out)
}

/// The characters to be escaped, with their positions.
fn hidden_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    text.char_indices().filter(move |&(at, c)| {
        let joins = is_joiner(c)
            && !(before.is_some_and(can_take_joiner)
                && text[at + c.len_utf8()..]
                    .chars()
                    .next()
                    .is_some_and(can_take_joiner));
        before = Some(c);
        joins || is_hidden(c)
    })
}

/// Two characters (ZWJ and ZWNJ) that shape their neighbours in some scripts and in emoji, and
/// show nothing elsewhere.
const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Whether it is a character of a script or an emoji that may be next to a joiner.
const fn can_take_joiner(c: char) -> bool {
    !c.is_ascii() && !is_joiner(c) && !is_hidden(c)
}

/// Whether a terminal interprets it, or displays nothing for it.
const fn is_hidden(c: char) -> bool {
    is_control(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether it moves the cursor, begins a control sequence, ends a line or reorders the displayed
/// text.
const fn is_control(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_escaped(out: &mut String, c: char) {
    let result = match c {
        '\n' => out.write_str(r"\n"),
        '\r' => out.write_str(r"\r"),
        '\t' => out.write_str(r"\t"),
        '\0'..='\x7f' => write!(out, r"\x{:02x}", u32::from(c)),
        _ => write!(out, r"\u{{{:x}}}", u32::from(c)),
    };
    debug_assert!(result.is_ok(), "a text takes every character");
}

/// Escapes one line that a program printed or a file holds, without its end: tabs stay,
/// trailing carriage returns are removed, bytes that are not UTF-8 become `\xe9`.
#[must_use]
pub fn visible_output(line: &[u8], colours: ColourMode) -> String {
    let mut line = line;
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut coloured = false;
    for chunk in line.utf8_chunks() {
        coloured |= push_output(&mut out, chunk.valid(), colours);
        for byte in chunk.invalid() {
            let result = write!(out, r"\x{byte:02x}");
            debug_assert!(result.is_ok(), "a text takes every character");
        }
    }
    if coloured {
        out.push_str(RESET);
    }
    out
}

/// Appends the text escaped; returns whether a colour was kept.
fn push_output(out: &mut String, text: &str, colours: ColourMode) -> bool {
    let mut coloured = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = match colours {
            ColourMode::Keep | ColourMode::Strip => sgr_sequence(rest),
            ColourMode::Escape => None,
        };
        let consumed = match colour {
            Some(sequence) => {
                if colours == ColourMode::Keep {
                    out.push_str(sequence);
                    coloured = true;
                }
                sequence.len()
            }
            None if is_control(c) && c != '\t' => {
                push_escaped(out, c);
                c.len_utf8()
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[consumed..];
    }
    coloured
}

/// The sequence at the beginning of the text that only sets a colour, a weight or an underline
/// (SGR). A sequence that conceals text does not count.
fn sgr_sequence(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\x1b[")?;
    let is_parameter = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
    let length = parameters.bytes().take_while(|it| is_parameter(it)).count();
    let ends = parameters.as_bytes().get(length) == Some(&b'm');
    let sequence = &text[.."\x1b[".len() + length + usize::from(ends)];
    (ends && sequence.len() <= COLOUR_BYTES && is_plain_style(&parameters[..length]))
        .then_some(sequence)
}

/// Whether each parameter of an SGR sequence leaves text readable.
fn is_plain_style(parameters: &str) -> bool {
    let mut parameters = parameters.split(';');
    while let Some(parameter) = parameters.next() {
        let (code, is_whole) = match parameter.split_once(':') {
            Some((code, _)) => (code, true),
            None => (parameter, false),
        };
        let skipped = match (code, is_whole) {
            ("", _) => 0,
            ("38" | "48" | "58", true) | ("4", _) => 0,
            ("38" | "48" | "58", false) => match parameters.next() {
                Some("5") => 1,
                Some("2") => 3,
                Some(_) | None => return false,
            },
            (code, false) => match code.parse::<u8>() {
                Ok(0..=7 | 9 | 21..=27 | 29..=37 | 39..=47 | 49 | 53 | 55 | 59) => 0,
                Ok(90..=97 | 100..=107) => 0,
                Ok(_) | Err(_) => return false,
            },
            (_, true) => return false,
        };
        if parameters.by_ref().take(skipped).count() < skipped {
            return false;
        }
    }
    true
}

/// Escapes a JSON document to an equal one in which no text can control a terminal.
#[must_use]
pub fn visible_json(document: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_control(c) && c != '\n';
    if !document.contains(is_escaped) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        if is_escaped(c) {
            let result = write!(out, r"\u{:04x}", u32::from(c));
            debug_assert!(result.is_ok(), "a text takes every character");
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reverses [`visible()`].
    fn unescaped(shown: &str) -> String {
        let mut text = String::new();
        let mut chars = shown.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            text.push(match chars.next().unwrap() {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '\\' => '\\',
                'x' => {
                    let code: String = chars.by_ref().take(2).collect();
                    char::from(u8::from_str_radix(&code, 16).unwrap())
                }
                'u' => {
                    let code: String = chars.by_ref().take_while(|&c| c != '}').collect();
                    char::from_u32(u32::from_str_radix(&code[1..], 16).unwrap()).unwrap()
                }
                other => panic!("\\{other}"),
            });
        }
        text
    }

    /// Texts with many of the characters in question.
    fn texts() -> impl Strategy<Value = String> {
        "([a-z\\\\ ]|\\x1b\\[[0-9;:]{0,6}m|[\\x00-\\x1f\\x7f-\u{9f}]|\
         [\u{ad}\u{61c}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{e0041}]|\
         [\u{e9}\u{6cc}\u{1f468}\u{4f60}]|\\PC){0,40}"
    }

    #[test]
    fn plain_text_is_untouched() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let persian = "می\u{200c}خواهم";
        for text in ["", "grep '\\.rs$' *", "grüße 你好 é", family, persian] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
            assert_eq!(visible_output(text.as_bytes(), ColourMode::Keep), text);
        }
        assert_eq!(visible_output(b"a\tb\r", ColourMode::Escape), "a\tb");
    }

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert_eq!(
            visible("rm -rf important #\rgit status"),
            r"rm -rf important #\rgit status"
        );
        assert_eq!(visible("a\n\x1b[2J\x7f\u{9b}m"), r"a\n\x1b[2J\x7f\u{9b}m");
        assert_eq!(
            visible("a\u{202e}b\u{2069}\u{2028}"),
            r"a\u{202e}b\u{2069}\u{2028}"
        );
        assert_eq!(visible("gi\u{200d}t\u{feff}"), r"gi\u{200d}t\u{feff}");
        assert_eq!(visible_lines("a\\\nb\rc"), "a\\\\\nb\\rc");
        assert_eq!(visible_lines("a\\\nb"), "a\\\nb");
    }

    #[test]
    fn an_escape_and_its_spelling_differ() {
        assert_eq!(visible("a\\n\n"), r"a\\n\n");
        assert_eq!(visible("a\\n"), "a\\n");
    }

    #[test]
    fn only_colours_pass() {
        let kept = |line: &str| visible_output(line.as_bytes(), ColourMode::Keep);
        for style in [
            "",
            "0",
            "1;31",
            "38;5;208",
            "48;2;1;2;3",
            "38:2::1:2:3",
            "4:3",
            "97;100",
        ] {
            let line = format!("\x1b[{style}mtext");
            assert_eq!(kept(&line), format!("{line}{RESET}"));
            assert_eq!(visible_output(line.as_bytes(), ColourMode::Strip), "text");
            let escaped = format!(r"\x1b[{style}mtext");
            assert_eq!(visible_output(line.as_bytes(), ColourMode::Escape), escaped);
        }
        for sequence in [
            "[8m", "[1;8m", "[38;5m", "[38;2;1m", "[?25l", "[2J", "]0;t\x07", "[>4;1m", "[31", "c",
            "[108m", "[38;9;1m", "[8:1m", "(0",
        ] {
            let shown = kept(&format!("a\x1b{sequence}"));
            assert!(shown.starts_with(r"a\x1b"), "{shown}");
            assert!(!shown.contains('\x1b'), "{shown}");
        }
        let long = format!("\x1b[{}m", "1;".repeat(COLOUR_BYTES));
        assert!(!kept(&long).contains('\x1b'));
    }

    #[test]
    fn bytes_that_are_no_text_are_written_out() {
        assert_eq!(
            visible_output(b"caf\xe9 \x9b2J", ColourMode::Keep),
            r"caf\xe9 \x9b2J"
        );
        assert_eq!(
            visible_output(b"10%\r20%\r\r", ColourMode::Keep),
            r"10%\r20%"
        );
    }

    proptest! {
        #[test]
        fn nothing_is_obeyed_and_nothing_lost(text in texts()) {
            let shown = visible(&text);
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
            prop_assert!(!has_hidden(&shown));
            prop_assert_eq!(visible(&shown), shown.as_ref());
            if has_hidden(&text) {
                prop_assert_eq!(unescaped(&shown), text);
            } else {
                prop_assert_eq!(shown.as_ref(), text.as_str());
            }
        }

        #[test]
        fn lines_hold_nothing_but_line_ends(text in texts()) {
            let shown = visible_lines(&text);
            prop_assert!(!shown.contains(|c| c != '\n' && is_hidden(c)), "{shown:?}");
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        }

        #[test]
        fn output_only_colours(
            pieces in prop::collection::vec(
                prop_oneof![texts().prop_map(String::into_bytes), any::<Vec<u8>>()], 0..4),
        ) {
            let line = pieces.concat();
            for colours in [ColourMode::Keep, ColourMode::Strip, ColourMode::Escape] {
                let shown = visible_output(&line, colours);
                let mut rest = shown.as_str();
                while let Some(at) = rest.find(|c| is_control(c) && c != '\t') {
                    prop_assert_eq!(colours, ColourMode::Keep);
                    let sequence = sgr_sequence(&rest[at..]);
                    prop_assert!(sequence.is_some(), "{shown:?}");
                    rest = &rest[at + sequence.map_or(1, str::len)..];
                }
                prop_assert!(!shown.contains('\x1b') || shown.ends_with(RESET));
            }
        }

        #[test]
        fn documents_say_the_same(text in texts(), other in texts()) {
            let document = serde_json::json!({text.clone(): [other, "\u{1f468}"]});
            let pretty = serde_json::to_string_pretty(&document).unwrap();
            let shown = visible_json(&pretty);
            prop_assert!(!shown.contains(|c| is_control(c) && c != '\n'));
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            prop_assert_eq!(read, document);
        }
    }
}
