//! The preamble: what a shell itself writes between the command-start mark and the command's
//! output.

use ostler_model::ShellKind;

/// Bytes after the mark that are searched; the preamble of fish holds the command line as title.
pub const PREAMBLE_BYTES: usize = 4 * 1024;

/// The length of the preamble after the mark. Only fish writes one: the end of bracketed paste, the
/// window's title, a colour reset, and a carriage return that ends it.
#[must_use]
pub fn preamble_len(kind: ShellKind, output: &[u8]) -> usize {
    match kind {
        ShellKind::Bash | ShellKind::Zsh => 0,
        ShellKind::Fish => fish_preamble_len(output).unwrap_or(0),
    }
}

fn fish_preamble_len(output: &[u8]) -> Option<usize> {
    let mut rest = output;
    for step in [reset_mode_len, title_len, plain_colours_len] {
        rest = &rest[step(rest)..];
    }
    let rest = rest.strip_prefix(b"\r")?;
    Some(output.len() - rest.len())
}

fn reset_mode_len(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(b"\x1b[?") {
        let digits = after
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if after.get(digits) != Some(&b'l') {
            break;
        }
        rest = &after[digits + 1..];
    }
    bytes.len() - rest.len()
}

fn title_len(bytes: &[u8]) -> usize {
    if !bytes.starts_with(b"\x1b]0;") {
        return 0;
    }
    bytes
        .iter()
        .position(|byte| *byte == 0x07)
        .map_or(0, |bell| bell + 1)
}

/// The length of a colour reset: select graphic rendition, the ASCII character set, shift in, the
/// parts of terminfo's `sgr0`.
fn plain_colours_len(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    loop {
        let after = if let Some(after) = rest.strip_prefix(b"\x1b(B") {
            after
        } else if let Some(after) = rest.strip_prefix(b"\x0f") {
            after
        } else if let Some(after) = rest.strip_prefix(b"\x1b[") {
            let values = after
                .iter()
                .take_while(|byte| matches!(byte, b'0'..=b'9' | b';'))
                .count();
            match after.get(values) {
                Some(b'm') => &after[values + 1..],
                Some(_) | None => break,
            }
        } else {
            break;
        };
        rest = after;
    }
    bytes.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(output: &[u8]) -> &[u8] {
        &output[preamble_len(ShellKind::Fish, output)..]
    }

    #[test]
    fn what_fish_writes_first_is_not_the_commands() {
        let all = b"\x1b[?2004l\x1b]0;printf hi /tmp\x07\x1b[30m\x1b(B\x1b[m\rhi";
        assert_eq!(rest(all), b"hi");
        assert_eq!(
            rest(b"\x1b[30m\x1b(B\x1b[m\r\x1b[31mred\r"),
            b"\x1b[31mred\r"
        );
        assert_eq!(rest(b"\x1b[m\x0f\r"), b"");
    }

    #[test]
    fn nothing_else_is_taken_for_it() {
        for output in [
            &b""[..],
            b"hi\r",
            b"\x1b[?2004h\r",
            b"\x1b]0;open",
            b"\x1b[",
        ] {
            assert_eq!(preamble_len(ShellKind::Fish, output), 0, "{output:?}");
        }
        assert_eq!(preamble_len(ShellKind::Bash, b"\x1b[?2004l\r"), 0);
    }
}
