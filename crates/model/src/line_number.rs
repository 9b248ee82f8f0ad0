//! Line numbers of positions in a text.

/// The line of a byte offset, from 1; the last one for an offset beyond the end.
#[must_use]
pub fn line_number(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let text = "a\né\n";
        let lines = [0, 1, 2, 3, 5, 99].map(|offset| line_number(text, offset));
        assert_eq!(lines, [1, 1, 2, 2, 3, 3]);
        assert_eq!(line_number("", 0), 1);
    }
}
