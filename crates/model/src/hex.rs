//! Hexadecimal encoding.

/// Encodes bytes as two lower-case hexadecimal digits each.
#[must_use]
pub fn lower_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    });
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(digits.map(char::from));
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_bytes_are_spelled_as_format_spells_them() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let formatted: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(super::lower_hex(&bytes), formatted);
        assert_eq!(super::lower_hex(&[]), "");
    }
}
