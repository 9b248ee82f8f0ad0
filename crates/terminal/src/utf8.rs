//! Incremental decoding of UTF-8 from a stream split at any byte.

use serde::{Deserialize, Serialize};

/// The bytes of an incomplete character: at most three.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Utf8Remainder(Vec<u8>);

/// The length of the longest character in bytes.
const CHAR_BYTES: usize = 4;

impl Utf8Remainder {
    /// Restores the remainder from a checkpoint; bytes that cannot be one are dropped.
    pub(crate) fn from_checkpoint(bytes: &[u8]) -> Self {
        let incomplete = std::str::from_utf8(bytes)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none());
        Self(if incomplete {
            bytes.to_vec()
        } else {
            Vec::new()
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Passes the text in `bytes` on in pieces; invalid bytes as U+FFFD, one for each maximal
    /// subpart (Unicode chapter 3, as `String::from_utf8_lossy` does).
    pub(crate) fn decode(&mut self, mut bytes: &[u8], mut text: impl FnMut(&str)) {
        while !self.0.is_empty() {
            let Some((first, rest)) = bytes.split_first() else {
                return;
            };
            self.0.push(*first);
            match std::str::from_utf8(&self.0) {
                Ok(character) => {
                    text(character);
                    self.0.clear();
                }
                Err(error) if error.error_len().is_none() && self.0.len() < CHAR_BYTES => {}
                Err(_) => {
                    // The last byte does not belong to it: it begins a new character.
                    text("\u{fffd}");
                    self.0.clear();
                    break;
                }
            }
            bytes = rest;
        }
        while !bytes.is_empty() {
            let error = match std::str::from_utf8(bytes) {
                Ok(all) => return text(all),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            if let Ok(valid) = std::str::from_utf8(valid)
                && !valid.is_empty()
            {
                text(valid);
            }
            let Some(invalid_len) = error.error_len() else {
                self.0.extend_from_slice(rest);
                return;
            };
            text("\u{fffd}");
            bytes = &rest[invalid_len..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(pieces: &[&[u8]]) -> (String, usize) {
        let mut carry = Utf8Remainder::default();
        let mut text = String::new();
        for piece in pieces {
            carry.decode(piece, |part| text.push_str(part));
            assert!(carry.bytes().len() < CHAR_BYTES);
        }
        (text, carry.bytes().len())
    }

    proptest! {
        #[test]
        fn any_cut_gives_what_lossy_decoding_gives(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"\xf0\x9f\x98\x80\xe2\x82\xac".to_vec())],
                0..40,
            ),
            cuts in prop::collection::vec(0usize..40, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let (text, carried) = decoded(&pieces);
            let whole = &bytes[..bytes.len() - carried];
            prop_assert_eq!(text, String::from_utf8_lossy(whole));
        }
    }

    #[test]
    fn only_what_can_be_carried_is_restored() {
        assert_eq!(
            Utf8Remainder::from_checkpoint(b"\xe2\x82").bytes(),
            b"\xe2\x82"
        );
        assert_eq!(Utf8Remainder::from_checkpoint(b"abc").bytes(), b"");
        assert_eq!(Utf8Remainder::from_checkpoint(b"\xff").bytes(), b"");
        assert_eq!(Utf8Remainder::from_checkpoint(b"a\xe2").bytes(), b"");
    }
}
