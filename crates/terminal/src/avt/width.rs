//! The width of characters.

use unicode_width::UnicodeWidthChar;

/// Vowel signs and marks that stand beside their letter, and signs that stand before numbers. The
/// Unicode tables count them to the width of the letter; the C library, by which programs lay out
/// their lines, gives them a cell (glibc 2.36 `wcwidth`, compared over all code points).
const SPACING: &[(char, char)] = &[
    ('\u{605}', '\u{605}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{9be}', '\u{9be}'),
    ('\u{9d7}', '\u{9d7}'),
    ('\u{b3e}', '\u{b3e}'),
    ('\u{b57}', '\u{b57}'),
    ('\u{bbe}', '\u{bbe}'),
    ('\u{bd7}', '\u{bd7}'),
    ('\u{cc0}', '\u{cc0}'),
    ('\u{cc2}', '\u{cc2}'),
    ('\u{cc7}', '\u{cc8}'),
    ('\u{cca}', '\u{ccb}'),
    ('\u{cd5}', '\u{cd6}'),
    ('\u{d3e}', '\u{d3e}'),
    ('\u{d4e}', '\u{d4e}'),
    ('\u{d57}', '\u{d57}'),
    ('\u{dcf}', '\u{dcf}'),
    ('\u{ddf}', '\u{ddf}'),
    ('\u{1715}', '\u{1715}'),
    ('\u{1734}', '\u{1734}'),
    ('\u{1b35}', '\u{1b35}'),
    ('\u{1b3b}', '\u{1b3b}'),
    ('\u{1b3d}', '\u{1b3d}'),
    ('\u{1b43}', '\u{1b44}'),
    ('\u{1baa}', '\u{1baa}'),
    ('\u{1bf2}', '\u{1bf3}'),
    ('\u{a8fa}', '\u{a8fa}'),
    ('\u{a953}', '\u{a953}'),
    ('\u{a9c0}', '\u{a9c0}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{111c0}', '\u{111c0}'),
    ('\u{111c2}', '\u{111c3}'),
    ('\u{11235}', '\u{11235}'),
    ('\u{1133e}', '\u{1133e}'),
    ('\u{1134d}', '\u{1134d}'),
    ('\u{11357}', '\u{11357}'),
    ('\u{114b0}', '\u{114b0}'),
    ('\u{114bd}', '\u{114bd}'),
    ('\u{115af}', '\u{115af}'),
    ('\u{116b6}', '\u{116b6}'),
    ('\u{11930}', '\u{11930}'),
    ('\u{1193d}', '\u{1193d}'),
    ('\u{1193f}', '\u{1193f}'),
    ('\u{11941}', '\u{11941}'),
    ('\u{11a84}', '\u{11a89}'),
    ('\u{11d46}', '\u{11d46}'),
    ('\u{1d165}', '\u{1d166}'),
    ('\u{1d16d}', '\u{1d172}'),
];

/// The number of cells that a character occupies: 0, 1 or 2.
pub(super) fn width(c: char) -> usize {
    match c.width().unwrap_or(0) {
        0 if is_spacing(c) => 1,
        width => width,
    }
}

fn is_spacing(c: char) -> bool {
    let index = SPACING.partition_point(|(first, _)| *first <= c);
    let range = index.checked_sub(1).and_then(|place| SPACING.get(place));
    range.is_some_and(|(_, last)| c <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_programs_count_with() {
        for (c, cells) in [
            ('a', 1),
            ('漢', 2),
            ('\u{301}', 0),
            ('\u{bbe}', 1),
            ('\u{9be}', 1),
            ('\u{94d}', 0),
            ('\u{200d}', 0),
            ('😀', 2),
        ] {
            assert_eq!(width(c), cells, "{c:?}");
        }
        assert!(SPACING.is_sorted());
    }
}
