//! Distinguishes binary output from text. Pure.

/// Percentage of characters, of those that text does not have, that makes a line binary.
const BINARY_PERCENT: usize = 10;
/// The highest percentage of NULs in a list of NUL-terminated words.
const SEPARATORS_PERCENT: usize = 25;

/// The kind of a decoded line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineContent {
    /// Text.
    Text,
    /// Text, or part of binary output: undecodable characters, or an empty line.
    Ambiguous,
    /// Bytes of a program, an archive, a picture.
    Binary,
}

/// Classifies a decoded line. U+FFFD alone makes no line binary: it may be text in another
/// encoding.
pub(super) fn classify_content(text: &str) -> LineContent {
    let (mut chars, mut nuls, mut controls, mut undecoded) = (0, 0, 0, 0);
    for c in text.chars() {
        chars += 1;
        match c {
            '\0' => nuls += 1,
            '\u{fffd}' => undecoded += 1,
            c if is_nontext_control(c) => controls += 1,
            _ => {}
        }
    }
    let separated = controls + undecoded == 0 && nuls * 100 <= chars * SEPARATORS_PERCENT;
    if nuls + controls > 0 && !separated {
        let odd = nuls + controls + undecoded;
        if odd * 100 >= chars * BINARY_PERCENT {
            return LineContent::Binary;
        }
    }
    if undecoded + controls > 0 || chars == 0 {
        LineContent::Ambiguous
    } else {
        LineContent::Text
    }
}

/// Control characters that neither text nor terminal sequences contain.
const fn is_nontext_control(c: char) -> bool {
    let used = matches!(c, '\x07'..='\x0f' | '\x1b');
    (c < ' ' && !used) || c == '\x7f'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_kind_is_text() {
        for text in [
            "plain",
            "grüße 你好",
            "\x1b[1;31mred\x1b[0m\x0f \x07",
            "10%\r20%\x08\x08",
            "a.txt\0bcd.txt\0",
        ] {
            assert_eq!(classify_content(text), LineContent::Text, "{text:?}");
        }
    }

    #[test]
    fn programs_and_pictures_are_binary() {
        for bytes in [
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0"[..],
            b"\x89PNG\r",
            b"\x1a",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
        ] {
            let text = String::from_utf8_lossy(bytes);
            assert_ne!(classify_content(&text), LineContent::Text, "{text:?}");
        }
        assert_eq!(classify_content("\0\0\0\0"), LineContent::Binary);
    }

    #[test]
    fn another_encoding_is_only_doubtful() {
        let text = String::from_utf8_lossy(b"gr\xfc\xdfe aus \xc4gypten");
        assert_eq!(classify_content(&text), LineContent::Ambiguous);
        assert_eq!(classify_content(""), LineContent::Ambiguous);
    }
}
