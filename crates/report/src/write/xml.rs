//! XML 1.0.

use std::fmt::{self, Display, Formatter, Write as _};

/// Text for an attribute or an element. Characters that XML 1.0 cannot hold become U+FFFD.
#[derive(Debug, Clone, Copy)]
pub(super) struct XmlText<'a>(pub(super) &'a str);

impl Display for XmlText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // As themselves they would be read as spaces in an attribute.
                '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(c))?,
                c if is_legal(c) => f.write_char(c)?,
                _ => f.write_char(char::REPLACEMENT_CHARACTER)?,
            }
        }
        Ok(())
    }
}

/// Whether XML 1.0 can hold the character.
const fn is_legal(c: char) -> bool {
    matches!(c, ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        let text = XmlText("<a href=\"x\">&</a>]]>").to_string();
        assert_eq!(text, "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;]]&gt;");
    }

    #[test]
    fn illegal_characters_are_replaced() {
        let text = XmlText("a\0b\u{1b}c\u{fffe}d\te\n\u{1f600}").to_string();
        assert_eq!(text, "a\u{fffd}b\u{fffd}c\u{fffd}d&#9;e&#10;\u{1f600}");
    }
}
