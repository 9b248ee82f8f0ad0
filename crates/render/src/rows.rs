//! Lines of a journal as rows of text: decoded per stream, cleaned, never splitting a
//! character.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use ostler_journal::{Decoder, Encoding, JournalLine, OpenLineMode};
use ostler_model::StreamName;

use super::clean::clean;
use super::condense::mark_binary;
use super::cost::group_thousands;
use super::redraw::RedrawFolder;
use super::row::OutputRow;

/// Bytes examined at the end of a line too long to read whole.
pub const LINE_TAIL_BYTES: u64 = 8 * 1024;

/// Characters shown of the beginning of such a line.
const LINE_HEAD_CHARS: usize = 1_200;
/// Characters shown of its end.
const LINE_TAIL_CHARS: usize = 400;

/// Decodes and cleans lines, each by itself; no encoding means UTF-8. An incomplete character at
/// the end of a line that may grow is omitted; at the final end it is U+FFFD.
#[must_use]
pub fn to_rows(
    lines: &[JournalLine],
    encoding: Option<Encoding>,
    last: OpenLineMode,
) -> Vec<OutputRow> {
    let mut rows = decode_rows(lines, encoding, last);
    for row in &mut rows {
        if let Cow::Owned(text) = clean(&row.text) {
            row.text = text;
        }
    }
    rows
}

/// Decodes consecutive lines and applies redraws across them.
pub fn fold_lines(
    fold: &mut RedrawFolder,
    lines: &[JournalLine],
    encoding: Option<Encoding>,
    last: OpenLineMode,
) {
    let clipped: HashSet<u64> = lines
        .iter()
        .filter(|line| line.clipped > 0)
        .map(|line| line.offset)
        .collect();
    for row in decode_rows(lines, encoding, last) {
        if row.binary || clipped.contains(&row.offset) {
            fold.push_whole_line(row);
        } else {
            fold.push_line(row);
        }
    }
}

/// Decoded lines, with escape sequences.
fn decode_rows(
    lines: &[JournalLine],
    encoding: Option<Encoding>,
    last: OpenLineMode,
) -> Vec<OutputRow> {
    let grows = last == OpenLineMode::Preview;
    let mut rows = match encoding.filter(|encoding| *encoding != Encoding::UTF_8) {
        None => lines.iter().map(|line| utf8_row(line, grows)).collect(),
        Some(encoding) => decode_streams(lines, encoding, grows),
    };
    mark_binary(&mut rows);
    rows
}

/// The text of a line whose middle was not read: its beginning and its end, or only its end where
/// it redraws itself.
pub fn splice_line_end(row: &mut OutputRow, end: &[u8]) {
    let end = String::from_utf8_lossy(without_half_character(end));
    if let Some(redraw) = first_redraw(&end) {
        row.text = clean(&end[redraw..]).into_owned();
        return;
    }
    let text = clean(&end);
    let head: String = row.text.chars().take(LINE_HEAD_CHARS).collect();
    let skipped = text.chars().count().saturating_sub(LINE_TAIL_CHARS);
    let end: String = text.chars().skip(skipped).collect();
    row.text = format!("{head}[… a line of {} bytes …]{end}", row.bytes);
    row.is_cut = true;
}

/// The text of a line of which only a part in its middle was read, with the omitted bytes and the
/// offset of the part.
pub fn mark_clipped(row: &mut OutputRow, line: &JournalLine) {
    let after = line.clipped - line.skipped;
    let text = row.text.trim_matches(char::REPLACEMENT_CHARACTER);
    let before = match line.skipped {
        0 => String::new(),
        skipped => format!(
            "[… {} bytes; cursor {}.0 …]",
            group_thousands(skipped),
            line.offset + skipped
        ),
    };
    let after = match after {
        0 => String::new(),
        after => format!("[… {} bytes …]", group_thousands(after)),
    };
    row.text = format!("{before}{text}{after}");
    row.is_cut = true;
}

/// The first position where a line returns to its beginning. A carriage return at the end does not
/// count.
fn first_redraw(text: &str) -> Option<usize> {
    let text = text.trim_end_matches('\r');
    let markers = ["\r", "\x1b[2K", "\x1b[1G", "\x1b[G", "\x1b[0G"];
    markers.iter().filter_map(|place| text.find(place)).min()
}

fn without_half_character(bytes: &[u8]) -> &[u8] {
    let half = bytes
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xc0 == 0x80)
        .count();
    &bytes[half..]
}

fn utf8_row(line: &JournalLine, grows: bool) -> OutputRow {
    let bytes = match std::str::from_utf8(&line.bytes) {
        Err(error) if grows && is_open(line) && error.error_len().is_none() => {
            &line.bytes[..error.valid_up_to()]
        }
        Ok(_) | Err(_) => &line.bytes,
    };
    new_row(line, String::from_utf8_lossy(bytes))
}

/// Whether the line may grow.
const fn is_open(line: &JournalLine) -> bool {
    !line.terminated && line.clipped == 0
}

fn new_row(line: &JournalLine, text: Cow<'_, str>) -> OutputRow {
    OutputRow {
        at: line.at,
        stream: line.stream,
        offset: line.offset,
        lines: 1,
        repeats: 1,
        binary: false,
        is_cut: false,
        bytes: line.bytes.len() as u64 + line.clipped + u64::from(line.terminated),
        text: text.into_owned(),
    }
}

/// Decodes each stream in one go, so that decoder state and partial characters carry over between
/// lines; a decoder may delay text, so a row is emitted with its line's end.
fn decode_streams(lines: &[JournalLine], encoding: Encoding, grows: bool) -> Vec<OutputRow> {
    let mut decoders: Vec<StreamDecoder<'_>> = Vec::new();
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let index = decoders
            .iter()
            .position(|decoder| decoder.stream == line.stream);
        let index = index.unwrap_or_else(|| {
            decoders.push(StreamDecoder::new(line.stream, encoding));
            decoders.len() - 1
        });
        decoders[index].push_line(line, &mut rows);
    }
    for decoder in decoders {
        decoder.finish(&mut rows, grows);
    }
    rows.sort_by_key(|row| row.offset);
    rows
}

/// One stream being decoded.
struct StreamDecoder<'a> {
    stream: StreamName,
    decoder: Decoder,
    text: String,
    pending_lines: VecDeque<&'a JournalLine>,
}

impl<'a> StreamDecoder<'a> {
    fn new(stream: StreamName, encoding: Encoding) -> Self {
        Self {
            stream,
            decoder: Decoder::new(encoding),
            text: String::new(),
            pending_lines: VecDeque::new(),
        }
    }

    fn push_line(&mut self, line: &'a JournalLine, rows: &mut Vec<OutputRow>) {
        if self
            .pending_lines
            .back()
            .is_some_and(|last| !last.terminated)
        {
            self.push(b"\n");
        }
        self.pending_lines.push_back(line);
        self.push(&line.bytes);
        if line.terminated {
            self.push(b"\n");
        }
        self.drain(rows);
    }

    fn push(&mut self, bytes: &[u8]) {
        let text = self.decoder.push(bytes);
        self.text.push_str(&text);
    }

    fn drain(&mut self, rows: &mut Vec<OutputRow>) {
        let mut from = 0;
        while let Some(end) = self.text[from..].find('\n') {
            if self.pending_lines.len() == 1 && !self.pending_lines[0].terminated {
                break;
            }
            let Some(line) = self.pending_lines.pop_front() else {
                break;
            };
            rows.push(new_row(line, Cow::Borrowed(&self.text[from..from + end])));
            from += end + 1;
        }
        self.text.drain(..from);
    }

    fn finish(mut self, rows: &mut Vec<OutputRow>, grows: bool) {
        let open = self.pending_lines.back().is_some_and(|last| is_open(last));
        if !(grows && open) {
            let rest = self.decoder.finish();
            self.text.push_str(&rest);
        }
        self.drain(rows);
        for line in self.pending_lines {
            let text = std::mem::take(&mut self.text);
            // In UTF-16 the second byte of a newline seems to start another line.
            if text.is_empty() && !line.terminated && !line.bytes.is_empty() {
                continue;
            }
            rows.push(new_row(line, Cow::Borrowed(text.trim_end_matches('\n'))));
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_journal::encoding_for_label;
    use ostler_model::Timestamp;

    use super::*;

    fn open_line(bytes: &[u8]) -> JournalLine {
        JournalLine {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset: 0,
            number: 0,
            bytes: bytes.to_vec(),
            terminated: false,
            clipped: 0,
            skipped: 0,
        }
    }

    fn shown(bytes: &[u8], label: &str, last: OpenLineMode) -> String {
        let encoding = encoding_for_label(label).ok();
        let rows = to_rows(&[open_line(bytes)], encoding, last);
        rows.into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn half_a_character_is_shown_only_where_nothing_more_will_come() {
        for (label, bytes, whole) in [
            ("utf-8", "ab你".as_bytes(), 2),
            ("gbk", &b"ab\xc4\xe3"[..], 2),
            ("shift_jis", &b"ab\x82\xa0"[..], 2),
        ] {
            let half = &bytes[..bytes.len() - 1];
            assert_eq!(shown(half, label, OpenLineMode::Preview), "ab", "{label}");
            let ended = shown(half, label, OpenLineMode::Final);
            assert!(ended.starts_with("ab\u{fffd}"), "{label}: {ended}");
            let all = shown(bytes, label, OpenLineMode::Preview);
            assert_eq!(all.chars().count(), whole + 1, "{label}: {all}");
        }
    }
}
