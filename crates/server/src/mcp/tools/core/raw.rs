//! Output as it was printed: nothing cleaned, nothing collapsed, only decoded.

use ostler_engine::Info;
use ostler_journal::{ByteQuery, Decoder, Encoding, Journal, ReadError, StreamSet};
use ostler_model::{Cursor, StreamName};

use crate::reading::{apart, encoding};

/// The longest beginning of a character that is not yet one, in bytes.
const HALF_CHARACTER_BYTES: usize = 3;

/// A piece of raw output.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Where to go on.
    pub(super) next: Cursor,
    /// Whether more is there already.
    pub(super) more: bool,
    /// Bytes before it that are gone.
    pub(super) gone: u64,
}

/// At most `chars` characters from `from` on; a character still on its way is left for the
/// next piece.
pub(super) async fn piece(
    journal: &Journal,
    info: &Info,
    (from, streams): (Cursor, StreamSet),
    chars: usize,
) -> Result<Piece, ReadError> {
    let encoding = encoding(info).unwrap_or(Encoding::UTF_8);
    let finished = info.state.is_finished();
    let query = ByteQuery {
        streams,
        // No encoding makes more characters than bytes.
        max_bytes: chars as u64,
        ..ByteQuery::from(from)
    };
    apart(journal, info, move |journal| {
        let page = journal.read(&query)?;
        let mut bytes: Vec<(StreamName, Vec<u8>)> = Vec::new();
        let end = page.chunks.last();
        let end = end.map(|chunk| chunk.offset + chunk.bytes.len() as u64);
        for chunk in page.chunks {
            match bytes.last_mut() {
                Some((stream, last)) if *stream == chunk.stream => last.extend(chunk.bytes),
                _ => bytes.push((chunk.stream, chunk.bytes)),
            }
        }
        let held = if finished && !page.more {
            0
        } else {
            held_back(&mut bytes, encoding)
        };
        Ok(Piece {
            text: decoded(&bytes, encoding),
            next: Cursor {
                offset: match end {
                    Some(end) if held > 0 => end - held,
                    _ => page.next.offset,
                },
                ..page.next
            },
            more: page.more,
            gone: page.gap.map_or(0, |gap| gap.to.saturating_sub(gap.from)),
        })
    })
    .await
}

/// Takes the beginning of an unfinished character off the end; answers how many bytes.
fn held_back(bytes: &mut [(StreamName, Vec<u8>)], encoding: Encoding) -> u64 {
    let Some((_, last)) = bytes.last_mut() else {
        return 0;
    };
    let whole = |cut: &usize| {
        let mut decoder = Decoder::new(encoding);
        decoder.push(&last[..last.len() - cut]);
        decoder.finish().is_empty()
    };
    let longest = HALF_CHARACTER_BYTES.min(last.len());
    let cut = (0..=longest).find(whole).unwrap_or(0);
    last.truncate(last.len() - cut);
    cut as u64
}

fn decoded(bytes: &[(StreamName, Vec<u8>)], encoding: Encoding) -> String {
    let mut decoders: Vec<(StreamName, Decoder)> = Vec::new();
    let mut text = String::new();
    for (stream, bytes) in bytes {
        let place = decoders.iter().position(|(of, _)| of == stream);
        let place = place.unwrap_or_else(|| {
            decoders.push((*stream, Decoder::new(encoding)));
            decoders.len() - 1
        });
        text.push_str(&decoders[place].1.push(bytes));
    }
    for (_, mut decoder) in decoders {
        text.push_str(&decoder.finish());
    }
    text
}
