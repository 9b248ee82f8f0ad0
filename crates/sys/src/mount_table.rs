//! The kernel's table of mounts (proc_pid_mountinfo(5)).

/// Decodes a field of the table: blanks, tabs, newlines and backslashes are written as a backslash
/// and three octal digits.
#[must_use]
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| first == b'\\');
        let value = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_are_decoded_once_and_all_else_stays() {
        assert_eq!(unescape(br"/a\040b\011c\012d\134e"), b"/a b\tc\nd\\e");
        assert_eq!(unescape(br"\134040"), br"\040");
        for plain in [&b"/plain"[..], br"a\", br"a\04", br"a\999", b"\xff"] {
            assert_eq!(unescape(plain), plain);
        }
    }
}
