//! Records of a connection's log, and their encoding: a header of [`HEADER_BYTES`] (kind, flags,
//! two bytes of padding, length, line; little-endian) and the payload.

use ostler_model::ExecutionId;

/// Size of a record's header, in bytes.
pub(crate) const HEADER_BYTES: usize = 16;
/// The line number of a record that is about no line.
const NO_LINE: u64 = u64::MAX;

const SNAPSHOT: u8 = 1;
const INPUT: u8 = 2;
const LINE: u8 = 3;
const BOUND: u8 = 4;
const DISPATCHED: u8 = 5;
const OUTPUT: u8 = 6;
const ATTACHED: u8 = 7;

const ANSWERS: u8 = 1;
const STANDING: u8 = 2;
const ACKNOWLEDGES: u8 = 4;
const TOO_LONG: u8 = 8;

/// The state of a line of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineFlags {
    /// It was answered, and stays in effect for the rest of the connection.
    pub(crate) standing: bool,
    /// Its subscription was acknowledged.
    pub(crate) acknowledged: bool,
    /// Only its beginning is stored.
    pub(crate) too_long: bool,
}

/// The kind of a line written to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// A request or notification of the server.
    Message,
    /// The answer to a line; `standing` where that line stays in effect for the rest of the
    /// connection.
    Answer { line: u64, standing: bool },
    /// The acknowledgement of a line's subscription.
    Acknowledgement { line: u64 },
}

/// An execution that a request starts: its batch member, and its ordinal among that one's starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartBinding {
    pub(crate) member: u32,
    pub(crate) start: u32,
    pub(crate) id: ExecutionId,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogRecord<'a> {
    /// Everything before this no longer counts; records of the remaining state follow.
    Snapshot {
        next_line: u64,
        generation: u32,
        skipping: bool,
        partial: &'a [u8],
    },
    /// Bytes read from the client.
    Input(&'a [u8]),
    /// In a snapshot: a line of the client.
    Line {
        line: u64,
        flags: LineFlags,
        text: &'a [u8],
    },
    /// A request is about to start this execution.
    Bound { line: u64, binding: StartBinding },
    /// A call that must not be repeated was dispatched to its tool.
    Dispatched { line: u64, member: u32 },
    /// A line for the client.
    Output { output: OutputKind, text: &'a [u8] },
    /// Another daemon took over the connection.
    Attached,
}

impl<'a> LogRecord<'a> {
    /// The encoded record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let small;
        let (kind, flags, line, payload): (u8, u8, u64, &[u8]) = match self {
            Self::Snapshot {
                next_line,
                generation,
                skipping,
                partial,
            } => {
                let flags = if *skipping { TOO_LONG } else { 0 };
                small = [&generation.to_le_bytes()[..], partial].concat();
                (SNAPSHOT, flags, *next_line, &small)
            }
            Self::Input(bytes) => (INPUT, 0, NO_LINE, bytes),
            Self::Line { line, flags, text } => (LINE, encode_line_flags(*flags), *line, text),
            Self::Bound { line, binding } => {
                let StartBinding { member, start, id } = binding;
                let id = id.to_string();
                small = [
                    &member.to_le_bytes()[..],
                    &start.to_le_bytes(),
                    id.as_bytes(),
                ]
                .concat();
                (BOUND, 0, *line, &small)
            }
            Self::Dispatched { line, member } => {
                small = member.to_le_bytes().to_vec();
                (DISPATCHED, 0, *line, &small)
            }
            Self::Output { output, text } => {
                let (flags, line) = encode_output(*output);
                (OUTPUT, flags, line, text)
            }
            Self::Attached => (ATTACHED, 0, NO_LINE, &[]),
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&[kind, flags, 0, 0]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&line.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    /// The first record of `bytes` and its length; none where it is truncated or unknown.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let (kind, flags) = (header[0], header[1]);
        let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
        let line = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let payload = rest.get(..length)?;
        let record = match kind {
            SNAPSHOT => {
                let (generation, partial) = read_u32(payload)?;
                Self::Snapshot {
                    next_line: line,
                    generation,
                    skipping: flags & TOO_LONG != 0,
                    partial,
                }
            }
            INPUT => Self::Input(payload),
            LINE => Self::Line {
                line,
                flags: LineFlags {
                    standing: flags & STANDING != 0,
                    acknowledged: flags & ACKNOWLEDGES != 0,
                    too_long: flags & TOO_LONG != 0,
                },
                text: payload,
            },
            BOUND => {
                let (member, payload) = read_u32(payload)?;
                let (start, payload) = read_u32(payload)?;
                let id = std::str::from_utf8(payload).ok()?.parse().ok()?;
                let binding = StartBinding { member, start, id };
                Self::Bound { line, binding }
            }
            DISPATCHED => {
                let (member, _) = read_u32(payload)?;
                Self::Dispatched { line, member }
            }
            OUTPUT => Self::Output {
                output: decode_output(flags, line),
                text: payload,
            },
            ATTACHED => Self::Attached,
            _ => return None,
        };
        Some((record, HEADER_BYTES + length))
    }
}

fn encode_line_flags(flags: LineFlags) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    bit(flags.standing, STANDING)
        | bit(flags.acknowledged, ACKNOWLEDGES)
        | bit(flags.too_long, TOO_LONG)
}

const fn encode_output(output: OutputKind) -> (u8, u64) {
    match output {
        OutputKind::Message => (0, NO_LINE),
        OutputKind::Answer { line, standing } => (
            if standing {
                ANSWERS | STANDING
            } else {
                ANSWERS
            },
            line,
        ),
        OutputKind::Acknowledgement { line } => (ACKNOWLEDGES, line),
    }
}

const fn decode_output(flags: u8, line: u64) -> OutputKind {
    if flags & ANSWERS != 0 {
        let standing = flags & STANDING != 0;
        OutputKind::Answer { line, standing }
    } else if flags & ACKNOWLEDGES != 0 {
        OutputKind::Acknowledgement { line }
    } else {
        OutputKind::Message
    }
}

fn read_u32(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = payload.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_not_when_cut_off() {
        let id = ExecutionId::mint();
        let flags = LineFlags {
            standing: true,
            acknowledged: false,
            too_long: true,
        };
        let records = [
            LogRecord::Snapshot {
                next_line: 7,
                generation: 3,
                skipping: true,
                partial: b"abc",
            },
            LogRecord::Input(b"{}\n"),
            LogRecord::Line {
                line: 2,
                flags,
                text: b"x",
            },
            LogRecord::Bound {
                line: 3,
                binding: StartBinding {
                    member: 1,
                    start: 2,
                    id,
                },
            },
            LogRecord::Dispatched { line: 3, member: 9 },
            LogRecord::Output {
                output: OutputKind::Answer {
                    line: 3,
                    standing: true,
                },
                text: b"y\n",
            },
            LogRecord::Output {
                output: OutputKind::Acknowledgement { line: 4 },
                text: b"",
            },
            LogRecord::Output {
                output: OutputKind::Message,
                text: b"z\n",
            },
            LogRecord::Attached,
        ];
        for record in records {
            let mut bytes = record.encode();
            let length = bytes.len();
            for cut in 0..length {
                assert_eq!(LogRecord::decode(&bytes[..cut]), None, "{record:?}");
            }
            bytes.push(1);
            assert_eq!(LogRecord::decode(&bytes), Some((record, length)));
        }
        assert_eq!(LogRecord::decode(&[0; 64]), None);
    }
}
