//! A line without escape sequences and overwritten text, as a person sees it.

use std::sync::LazyLock;

use regex::Regex;

/// CSI, OSC, and two-character escape sequences.
static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
        .expect("a constant")
});

/// Without escape sequences, redrawn parts and space at its end.
pub(crate) fn visible_line(line: &str) -> String {
    let plain = ESCAPES.replace_all(line, "");
    let drawn = plain.split('\r').rfind(|part| !part.trim().is_empty());
    let visible = drawn.unwrap_or_default().chars();
    let visible: String = visible
        .filter(|it| !it.is_control() || *it == '\t')
        .collect();
    visible.trim_end().to_owned()
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
