//! DNS messages (RFC 1035), as far as a name server needs them that gives one kind of answer: it
//! parses one question and writes one answer with at most one address.
//!
//! No general codec is needed: nothing is allocated by a length in the message, compression is
//! refused where it is not needed, and other forms are refused as malformed.

use std::net::Ipv4Addr;

/// The port of DNS, UDP and TCP.
pub(crate) const PORT: u16 = 53;
/// Bytes of the largest question read; larger ones are cut off and found malformed.
pub(crate) const QUERY_BYTES: usize = 1232;
/// How long an answer may be kept, in seconds.
pub(crate) const TTL_S: u32 = 30;

const HEADER_BYTES: usize = 12;
/// The longest name on the wire, in bytes.
const NAME_BYTES: usize = 255;
const LABEL_BYTES: u8 = 63;
/// The UDP payload size announced by EDNS, in bytes.
const EDNS_BYTES: u16 = 1232;

const TYPE_A: u16 = 1;
const TYPE_OPT: u16 = 41;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const OPTION_EXTENDED_ERROR: u16 = 15;
/// The extended error "Prohibited" (RFC 8914, section 4.19).
const EXTENDED_PROHIBITED: u16 = 18;

const FLAG_RESPONSE: u16 = 0x8000;
const FLAG_AUTHORITATIVE: u16 = 0x0400;
const FLAG_RECURSION_DESIRED: u16 = 0x0100;
const FLAG_RECURSION_AVAILABLE: u16 = 0x0080;
const OPCODE_MASK: u16 = 0x7800;
/// A compression pointer to the question's name, which is at the same offset in every message.
const POINTER_TO_NAME: u16 = 0xc00c;

/// A parsed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DnsQuery {
    id: u16,
    flags: u16,
    /// Name, type and class as received, so that the reply keeps the case of the name.
    raw: Vec<u8>,
    /// The labels joined by dots, in lower case; bytes that are no UTF-8 are replaced, which
    /// no rule's name matches.
    pub(crate) name: String,
    kind: u16,
    class: u16,
    edns: bool,
}

/// The record type a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// An address of IPv4, or anything there is.
    Address,
    /// Another type, of which there are no records.
    Other,
}

/// Why a message is not a question that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DnsParseError {
    /// No answer may be sent: an answer itself, or too short for one.
    Noise,
    /// The header is valid, the rest is not.
    Malformed {
        /// The identifier of the message.
        id: u16,
    },
    /// An operation other than a query.
    NotAQuery {
        /// The identifier of the message.
        id: u16,
    },
}

/// The content of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DnsReply {
    /// The name's address.
    Address(Ipv4Addr),
    /// The name exists, but has no record of the requested type.
    Empty,
    /// The name does not exist (NXDOMAIN), because no rule allows it.
    Prohibited,
    /// A temporary failure (SERVFAIL).
    Failed,
}

impl DnsReply {
    const fn code(self) -> u16 {
        match self {
            Self::Address(_) | Self::Empty => 0,
            Self::Failed => 2,
            // Not REFUSED: after that, C libraries try again and then report a temporary failure,
            // and package managers try again in turn.
            Self::Prohibited => 3,
        }
    }
}

impl DnsQuery {
    /// Reads one message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, DnsParseError> {
        let header = bytes.get(..HEADER_BYTES).ok_or(DnsParseError::Noise)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (id, flags) = (word(0), word(2));
        if flags & FLAG_RESPONSE != 0 {
            return Err(DnsParseError::Noise);
        }
        if flags & OPCODE_MASK != 0 {
            return Err(DnsParseError::NotAQuery { id });
        }
        let malformed = DnsParseError::Malformed { id };
        let (questions, answers, authorities) = (word(4), word(6), word(8));
        if (questions, answers, authorities) != (1, 0, 0) {
            return Err(malformed);
        }
        let rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let (name, name_bytes) = parse_name(rest).ok_or(malformed)?;
        let raw = rest.get(..name_bytes + 4).ok_or(malformed)?;
        let tail = &raw[name_bytes..];
        let additional = &rest[raw.len()..];
        Ok(Self {
            id,
            flags,
            raw: raw.to_vec(),
            name,
            kind: u16::from_be_bytes([tail[0], tail[1]]),
            class: u16::from_be_bytes([tail[2], tail[3]]),
            edns: word(10) > 0 && is_opt(additional),
        })
    }

    /// The kind of the requested record.
    pub(crate) const fn record_kind(&self) -> RecordKind {
        match (self.class, self.kind) {
            (CLASS_IN, TYPE_A | TYPE_ANY) => RecordKind::Address,
            _ => RecordKind::Other,
        }
    }

    /// The message that answers it.
    pub(crate) fn response(&self, reply: DnsReply) -> Vec<u8> {
        let recursion = self.flags & FLAG_RECURSION_DESIRED;
        let mut message = DnsWriter::header(self.id, recursion | FLAG_AUTHORITATIVE | reply.code());
        let address = match reply {
            DnsReply::Address(address) => Some(address),
            DnsReply::Empty | DnsReply::Prohibited | DnsReply::Failed => None,
        };
        let counts = [1, u16::from(address.is_some()), 0, u16::from(self.edns)];
        message.words(&counts);
        message.0.extend_from_slice(&self.raw);
        if let Some(address) = address {
            message.words(&[POINTER_TO_NAME, TYPE_A, CLASS_IN]);
            message.0.extend_from_slice(&TTL_S.to_be_bytes());
            message.words(&[4]);
            message.0.extend_from_slice(&address.octets());
        }
        if self.edns {
            message.opt(reply == DnsReply::Prohibited);
        }
        message.0
    }
}

/// The error response to a malformed question; none where none may be sent.
pub(crate) fn error_response(unreadable: DnsParseError) -> Option<Vec<u8>> {
    let (id, code) = match unreadable {
        DnsParseError::Noise => return None,
        DnsParseError::Malformed { id } => (id, 1),
        DnsParseError::NotAQuery { id } => (id, 4),
    };
    let mut message = DnsWriter::header(id, code);
    message.words(&[0; 4]);
    Some(message.0)
}

/// Parses a name without compression: its text, and how many bytes it takes.
fn parse_name(bytes: &[u8]) -> Option<(String, usize)> {
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        let length = *bytes.get(at)?;
        at += 1;
        if length == 0 {
            break;
        }
        // The two high bits mark a compression pointer, or are reserved.
        if length > LABEL_BYTES {
            return None;
        }
        let label = bytes.get(at..at + usize::from(length))?;
        at += label.len();
        if at >= NAME_BYTES {
            return None;
        }
        if !name.is_empty() {
            name.push(b'.');
        }
        // A dot within a label must not look like a separator.
        let plain = |&byte: &u8| {
            if byte == b'.' {
                0xff
            } else {
                byte.to_ascii_lowercase()
            }
        };
        name.extend(label.iter().map(plain));
    }
    Some((String::from_utf8_lossy(&name).into_owned(), at))
}

/// Whether the additional section begins with an EDNS record: the root's name, and the type OPT.
fn is_opt(additional: &[u8]) -> bool {
    let [high, low] = TYPE_OPT.to_be_bytes();
    additional.starts_with(&[0, high, low])
}

struct DnsWriter(Vec<u8>);

impl DnsWriter {
    fn header(id: u16, flags: u16) -> Self {
        let mut writer = Self(Vec::with_capacity(512));
        writer.words(&[id, FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE | flags]);
        writer
    }

    fn words(&mut self, words: &[u16]) {
        for word in words {
            self.0.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Writes the EDNS record and, if prohibited, the extended error in it.
    fn opt(&mut self, prohibited: bool) {
        const TEXT: &[u8] = b"not in the allow list of this execution";
        self.0.push(0);
        self.words(&[TYPE_OPT, EDNS_BYTES, 0, 0]);
        let option = if prohibited { TEXT } else { b"" };
        let length = u16::try_from(option.len()).unwrap_or(0);
        if prohibited {
            self.words(&[length + 6]);
            self.words(&[OPTION_EXTENDED_ERROR, length + 2, EXTENDED_PROHIBITED]);
            self.0.extend_from_slice(option);
        } else {
            self.words(&[0]);
        }
    }
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
