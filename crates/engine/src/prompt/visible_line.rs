//! A line without escape sequences and overwritten text, as displayed.

use ostler_escape::{EscapeEvent, EscapeParser};

/// Removes escape sequences, overwritten text and trailing white space.
pub(crate) fn visible_line(line: &str) -> String {
    let plain = without_sequences(line);
    let drawn = plain.split('\r').rfind(|part| !part.trim().is_empty());
    let visible = drawn.unwrap_or_default().chars();
    let visible: String = visible
        .filter(|it| !it.is_control() || *it == '\t')
        .collect();
    visible.trim_end().to_owned()
}

fn without_sequences(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    EscapeParser::default().advance(line.as_bytes(), |event, _| match event {
        // Sequences begin and end with ASCII: they cut no character in two.
        EscapeEvent::Text(text) => plain.push_str(str::from_utf8(text).unwrap_or_default()),
        EscapeEvent::Control(byte) => plain.push(char::from(byte)),
        EscapeEvent::ControlSequence(_) | EscapeEvent::Escape { .. } | EscapeEvent::Osc { .. } => {}
    });
    plain
}

#[cfg(test)]
mod tests {
    use super::visible_line;

    #[test]
    fn what_is_seen() {
        for (raw, seen) in [
            ("Name: ", "Name:"),
            (
                "\x1b[1;32m?\x1b[0m Project \x1b[2mname\x1b[22m: ",
                "? Project name:",
            ),
            ("\x1b]0;title\x07user@host:~$ ", "user@host:~$"),
            ("\x1b]133;A\x1b\\$ ", "$"),
            ("loading 10%\rloading 20%\rName: \r", "Name:"),
            ("\x1b[?2004h>>> ", ">>>"),
            ("\x1b(B\x1b[mlogin: ", "login:"),
            ("  \t ", ""),
        ] {
            assert_eq!(visible_line(raw), seen, "{raw:?}");
        }
    }
}
