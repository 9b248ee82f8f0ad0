//! Raw output: decoded, neither cleaned nor collapsed.

use ostler_engine::ExecutionInfo;
use ostler_journal::{ByteQuery, Decoder, Encoding, Journal, ReadError, StreamSet};
use ostler_model::{Cursor, StreamName};

use ostler_interface::output_reader::{encoding, run_read};

/// The longest incomplete character, in bytes.
const HALF_CHARACTER_BYTES: usize = 3;

/// A chunk of raw output.
#[derive(Debug, Default)]
pub(in crate::tools) struct RawChunk {
    pub(in crate::tools) text: String,
    /// The position to continue from.
    pub(in crate::tools) next: Cursor,
    /// Whether more is available already.
    pub(in crate::tools) more: bool,
    /// Bytes before it that are gone.
    pub(in crate::tools) gone_bytes: u64,
}

/// At most `chars` characters from `from` on; an incomplete character is left for the next chunk.
pub(in crate::tools) async fn read_chunk(
    journal: &Journal,
    info: &ExecutionInfo,
    from: Cursor,
    streams: StreamSet,
    chars: usize,
) -> Result<RawChunk, ReadError> {
    let encoding = encoding(info).unwrap_or(Encoding::UTF_8);
    let finished = info.state.is_finished();
    let query = ByteQuery {
        streams,
        // No encoding yields more characters than bytes.
        max_bytes: chars as u64,
        ..ByteQuery::starting_at(from)
    };
    run_read(journal, info, move |journal| {
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
        let withheld = if finished && !page.more {
            0
        } else {
            withhold_partial_char(&mut bytes, encoding)
        };
        Ok(RawChunk {
            text: decode(&bytes, encoding),
            next: Cursor {
                offset: match end {
                    Some(end) if withheld > 0 => end - withheld,
                    _ => page.next.offset,
                },
                ..page.next
            },
            more: page.more,
            gone_bytes: page.gap.map_or(0, |gap| gap.to.saturating_sub(gap.from)),
        })
    })
    .await
}

/// Removes an incomplete character from the end; returns its length in bytes.
fn withhold_partial_char(bytes: &mut [(StreamName, Vec<u8>)], encoding: Encoding) -> u64 {
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

fn decode(bytes: &[(StreamName, Vec<u8>)], encoding: Encoding) -> String {
    let mut decoders: Vec<(StreamName, Decoder)> = Vec::new();
    let mut text = String::new();
    for (stream, bytes) in bytes {
        let index = decoders.iter().position(|(of, _)| of == stream);
        let index = index.unwrap_or_else(|| {
            decoders.push((*stream, Decoder::new(encoding)));
            decoders.len() - 1
        });
        text.push_str(&decoders[index].1.push(bytes));
    }
    for (_, mut decoder) in decoders {
        text.push_str(&decoder.finish());
    }
    text
}
