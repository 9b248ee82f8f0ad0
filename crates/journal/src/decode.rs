//! Decoding of output bytes to text: any WHATWG label, never splitting a character.

use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use thiserror::Error;

/// The most non-ASCII output, in bytes, that `auto` inspects before it decides.
pub const DETECT_BYTES: usize = 4096;

/// A character encoding, or `auto`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Encoding(Option<&'static encoding_rs::Encoding>);

/// The error for a label that names no encoding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no known encoding: give a WHATWG label such as utf-8, gbk, gb18030, shift_jis, \
     euc-kr, windows-1252, or auto"
)]
pub struct UnknownEncoding(pub String);

/// Names in common use that the WHATWG table does not list.
const ALIASES: [(&str, &str); 16] = [
    ("cp936", "gbk"),
    ("ms936", "gbk"),
    ("cp54936", "gb18030"),
    ("cp950", "big5"),
    ("cp932", "shift_jis"),
    ("cp949", "euc-kr"),
    ("cp65001", "utf-8"),
    ("cp1200", "utf-16le"),
    ("utf_8", "utf-8"),
    ("utf16", "utf-16le"),
    ("utf_16_le", "utf-16le"),
    ("latin-1", "windows-1252"),
    ("euc_jp", "euc-jp"),
    ("euc_kr", "euc-kr"),
    ("cp874", "windows-874"),
    ("cp20932", "euc-jp"),
];

/// Finds the encoding with this label: any WHATWG label, common aliases (`cp936`, `latin1`), or
/// `auto`. Case is ignored.
///
/// # Errors
/// When no encoding has this label.
pub fn encoding_for_label(label: &str) -> Result<Encoding, UnknownEncoding> {
    let label_lower = label.trim().to_ascii_lowercase();
    if label_lower == "auto" {
        return Ok(Encoding::AUTO);
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == label_lower);
    let name = alias.map_or(label_lower.as_str(), |(_, name)| name);
    encoding_rs::Encoding::for_label_no_replacement(name.as_bytes())
        .map(|found| Encoding(Some(found)))
        .ok_or_else(|| UnknownEncoding(label.to_owned()))
}

impl Encoding {
    /// UTF-8.
    pub const UTF_8: Self = Self(Some(encoding_rs::UTF_8));
    /// Detected from the bytes.
    pub const AUTO: Self = Self(None);

    /// Its WHATWG name, or `auto`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.map_or("auto", encoding_rs::Encoding::name)
    }

    /// Resolves `auto` to the encoding that `sample` seems to be in; others to themselves.
    #[must_use]
    pub fn resolve(self, sample: &[u8]) -> Self {
        Self(Some(self.0.unwrap_or_else(|| detect(sample))))
    }

    /// Whether ASCII bytes, control characters among them, stand for themselves; not so in UTF-16
    /// and ISO-2022-JP.
    #[must_use]
    pub fn is_ascii_compatible(self) -> bool {
        self.0
            .is_none_or(encoding_rs::Encoding::is_ascii_compatible)
    }

    /// Whether these bytes decode to the same text as in UTF-8.
    pub(crate) fn is_utf8_identical(self, bytes: &[u8]) -> bool {
        self.is_ascii_compatible() && bytes.is_ascii()
    }

    /// The encoded length of this text in bytes; exact for text decoded from well-formed bytes.
    pub(crate) fn encoded_len(self, text: &str) -> usize {
        self.0
            .map_or(text.len(), |encoding| encoding.encode(text).0.len())
    }

    /// Decodes a whole text at once; malformed bytes become U+FFFD.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> String {
        let mut decoder = Decoder::new(self);
        let mut text = decoder.push(bytes);
        text.push_str(&decoder.finish());
        text
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn detect(sample: &[u8]) -> &'static encoding_rs::Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    // A sample may end in the middle of a character.
    detector.feed(sample, false);
    detector.guess(None, Utf8Detection::Allow)
}

/// Decodes one stream incrementally, split at any byte. With `auto`, ASCII is passed on at once;
/// from the first other byte on, up to [`DETECT_BYTES`] are held back until the encoding is
/// detected, so that the text does not depend on the splits.
pub struct Decoder {
    state: DecoderState,
}

enum DecoderState {
    /// ASCII only so far; these bytes wait for the detection.
    Undecided(Vec<u8>),
    Decided(encoding_rs::Decoder),
    Finished,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        let state = match encoding.0 {
            None => DecoderState::Undecided(Vec::new()),
            Some(encoding) => DecoderState::Decided(encoding.new_decoder_with_bom_removal()),
        };
        Self { state }
    }

    /// The text that is complete after these bytes; an incomplete character is held back.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        match &mut self.state {
            DecoderState::Decided(decoder) => decode_chunk(decoder, bytes, false),
            DecoderState::Finished => String::new(),
            DecoderState::Undecided(pending) => {
                let mut text = String::new();
                let mut bytes = bytes;
                if pending.is_empty() {
                    let first_non_ascii = bytes.iter().position(|&byte| !is_plain_ascii(byte));
                    let (ascii, rest) = bytes.split_at(first_non_ascii.unwrap_or(bytes.len()));
                    text.extend(ascii.iter().map(|&byte| char::from(byte)));
                    bytes = rest;
                }
                let remaining = DETECT_BYTES - pending.len();
                pending.extend_from_slice(&bytes[..remaining.min(bytes.len())]);
                if pending.len() == DETECT_BYTES {
                    let rest = bytes[remaining.min(bytes.len())..].to_vec();
                    text.push_str(&self.detect_and_decode());
                    text.push_str(&self.push(&rest));
                }
                text
            }
        }
    }

    /// The remaining text; an incomplete character becomes U+FFFD. No call may follow.
    pub fn finish(&mut self) -> String {
        let mut text = match &self.state {
            DecoderState::Undecided(_) => self.detect_and_decode(),
            DecoderState::Decided(_) | DecoderState::Finished => String::new(),
        };
        if let DecoderState::Decided(decoder) = &mut self.state {
            text.push_str(&decode_chunk(decoder, &[], true));
        }
        self.state = DecoderState::Finished;
        text
    }

    fn detect_and_decode(&mut self) -> String {
        let DecoderState::Undecided(pending) = &mut self.state else {
            return String::new();
        };
        let sample = std::mem::take(pending);
        let mut decoder = detect(&sample).new_decoder_without_bom_handling();
        let text = decode_chunk(&mut decoder, &sample, false);
        self.state = DecoderState::Decided(decoder);
        text
    }
}

/// Whether the byte is ASCII with the same meaning in every encoding that may be detected.
const fn is_plain_ascii(byte: u8) -> bool {
    const ESCAPE: u8 = 0x1b;
    byte < 0x80 && byte != ESCAPE
}

fn decode_chunk(decoder: &mut encoding_rs::Decoder, bytes: &[u8], last: bool) -> String {
    let capacity = decoder
        .max_utf8_buffer_length(bytes.len())
        .unwrap_or(bytes.len());
    let mut text = String::with_capacity(capacity);
    let mut rest = bytes;
    loop {
        let (result, read, _) = decoder.decode_to_string(rest, &mut text, last);
        rest = &rest[read..];
        match result {
            encoding_rs::CoderResult::InputEmpty => return text,
            encoding_rs::CoderResult::OutputFull => text.reserve(rest.len().max(16) * 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "plain, 汉字と한국어, カタカナ ½ é ü — end\n";

    fn encoded(encoding: Encoding) -> Vec<u8> {
        if encoding.name() == "UTF-16LE" {
            return TEXT.encode_utf16().flat_map(u16::to_le_bytes).collect();
        }
        encoding.0.unwrap().encode(TEXT).0.into_owned()
    }

    #[test]
    fn no_cut_breaks_a_character() {
        for label in [
            "utf-8",
            "gbk",
            "cp936",
            "gb18030",
            "shift_jis",
            "euc-kr",
            "utf-16le",
            "big5",
            "iso-2022-jp",
            "auto",
        ] {
            let encoding = encoding_for_label(label).unwrap();
            let bytes = if label == "auto" {
                TEXT.as_bytes().to_vec()
            } else {
                encoded(encoding)
            };
            let whole = encoding.decode(&bytes);
            for one in 0..=bytes.len() {
                for two in one..=bytes.len() {
                    let mut decoder = Decoder::new(encoding);
                    let mut text = decoder.push(&bytes[..one]);
                    text.push_str(&decoder.push(&bytes[one..two]));
                    text.push_str(&decoder.push(&bytes[two..]));
                    text.push_str(&decoder.finish());
                    assert_eq!(text, whole, "{label} cut at {one} and {two}");
                }
            }
        }
        for label in ["utf-8", "gb18030", "utf-16le"] {
            let encoding = encoding_for_label(label).unwrap();
            assert_eq!(encoding.decode(&encoded(encoding)), TEXT);
        }
    }

    #[test]
    fn auto_finds_out() {
        let text = "编译失败：找不到文件。请检查路径是否正确，然后再试一次。\n".repeat(200);
        let gbk = encoding_rs::GBK.encode(&text).0.into_owned();
        assert!(Encoding::AUTO.decode(&gbk) == text);
        assert!(Encoding::AUTO.decode(text.as_bytes()) == text);
        assert_eq!(Encoding::AUTO.resolve(&gbk).name(), "GBK");
        let mut decoder = Decoder::new(Encoding::AUTO);
        assert_eq!(decoder.push(b"ready\n"), "ready\n");
    }

    #[test]
    fn labels_are_known_or_refused() {
        for (label, name) in [
            ("UTF-8", "UTF-8"),
            ("cp936", "GBK"),
            ("latin1", "windows-1252"),
            (" GB18030 ", "gb18030"),
            ("Shift_JIS", "Shift_JIS"),
            ("auto", "auto"),
        ] {
            assert_eq!(encoding_for_label(label).unwrap().name(), name);
        }
        for label in ["", "utf-9", "klingon", "iso-2022-kr"] {
            assert!(
                encoding_for_label(label)
                    .unwrap_err()
                    .to_string()
                    .contains("auto")
            );
        }
    }

    #[test]
    fn what_is_malformed_is_replaced() {
        assert_eq!(
            Encoding::UTF_8.decode(b"a\xffb\xe6\xb1"),
            "a\u{fffd}b\u{fffd}"
        );
    }
}
