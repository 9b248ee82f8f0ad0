//! The Avro object container format.

use std::io::Write;
use std::sync::LazyLock;

use apache_avro::types::Value;
use apache_avro::{Schema, Writer};
use ostler_model::StreamName;

use crate::entry::{EntrySink, ExportEntry};
use crate::error::ExportError;

/// One record type for every kind of entry; `kind` decides which fields are set.
const SCHEMA: &str = r#"{
  "type": "record", "name": "Entry", "namespace": "ostler",
  "fields": [
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["execution", "event", "output", "gap"]}},
    {"name": "at_ns", "type": ["null", "long"], "doc": "nanoseconds since the Unix epoch", "default": null},
    {"name": "stream", "type": ["null", {"type": "enum", "name": "Stream", "symbols": ["stdout", "stderr", "pty", "stdin"]}], "default": null},
    {"name": "offset", "type": "long", "doc": "output bytes before this; the first byte gone"},
    {"name": "to", "type": ["null", "long"], "doc": "the first byte after a gap", "default": null},
    {"name": "data", "type": ["null", "bytes"], "doc": "output, as it was printed", "default": null},
    {"name": "json", "type": ["null", "string"], "doc": "the execution or the event", "default": null}
  ]
}"#;

/// The parsed schema, once for the process. Exports report an error should it not parse.
static PARSED: LazyLock<Result<Schema, String>> =
    LazyLock::new(|| Schema::parse_str(SCHEMA).map_err(|error| error.to_string()));

/// The length of the sync marker at the end of a file, which an append must repeat.
pub(crate) const MARKER_BYTES: usize = 16;
const KINDS: [&str; 4] = ["execution", "event", "output", "gap"];

/// Writes entries as records of a container file.
pub(crate) struct AvroSink<W: Write> {
    writer: Writer<'static, W>,
}

impl<W: Write> AvroSink<W> {
    /// A sink at the beginning of a file.
    pub(crate) fn begin(out: W) -> Result<Self, ExportError> {
        let schema = PARSED
            .as_ref()
            .map_err(|error| ExportError::Encode(error.clone()))?;
        Ok(Self {
            writer: Writer::new(schema, out),
        })
    }

    /// A sink at the end of a file that ends with this sync marker.
    pub(crate) fn append(out: W, marker: [u8; MARKER_BYTES]) -> Result<Self, ExportError> {
        let schema = PARSED
            .as_ref()
            .map_err(|error| ExportError::Encode(error.clone()))?;
        Ok(Self {
            writer: Writer::append_to(schema, out, marker),
        })
    }

    /// Writes buffered records.
    pub(crate) fn finish(&mut self) -> Result<(), ExportError> {
        self.writer.flush().map(drop).map_err(encode)
    }
}

impl<W: Write> EntrySink for AvroSink<W> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        let record = to_avro_record(entry)?;
        self.writer.append(record).map(drop).map_err(encode)
    }
}

fn encode(error: apache_avro::Error) -> ExportError {
    ExportError::Encode(error.to_string())
}

/// The fields of an entry besides its kind.
#[derive(Default)]
struct AvroFields {
    at_ns: Option<i64>,
    stream: Option<StreamName>,
    offset: u64,
    to: Option<u64>,
    data: Option<Vec<u8>>,
    json: Option<String>,
}

fn to_avro_record(entry: &ExportEntry<'_>) -> Result<Value, ExportError> {
    let (kind, fields) = match entry {
        ExportEntry::Execution { id, spec } => {
            let json = serde_json::json!({ "id": id, "spec": spec }).to_string();
            (
                0,
                AvroFields {
                    json: Some(json),
                    ..AvroFields::default()
                },
            )
        }
        ExportEntry::Event(record) => {
            let json = serde_json::to_string(record)?;
            let at_ns = i64::try_from(record.at.as_nanosecond()).ok();
            (
                1,
                AvroFields {
                    at_ns,
                    offset: record.offset,
                    json: Some(json),
                    ..AvroFields::default()
                },
            )
        }
        ExportEntry::Output(chunk) => {
            let fields = AvroFields {
                at_ns: i64::try_from(chunk.at.as_nanosecond()).ok(),
                stream: Some(chunk.stream),
                offset: chunk.offset,
                data: Some(chunk.bytes.clone()),
                ..AvroFields::default()
            };
            (2, fields)
        }
        ExportEntry::Gap(gap) => (
            3,
            AvroFields {
                offset: gap.from,
                to: Some(gap.to),
                ..AvroFields::default()
            },
        ),
    };
    Ok(to_avro(kind, fields))
}

fn to_avro(kind: u32, fields: AvroFields) -> Value {
    let long = |number: u64| Value::Long(i64::try_from(number).unwrap_or(i64::MAX));
    let stream = |name: StreamName| {
        let (index, symbol) = match name {
            StreamName::Stdout => (0, "stdout"),
            StreamName::Stderr => (1, "stderr"),
            StreamName::Pty => (2, "pty"),
            StreamName::Stdin => (3, "stdin"),
        };
        Value::Enum(index, symbol.to_owned())
    };
    let kind_name = KINDS[kind as usize % KINDS.len()].to_owned();
    let field = |name: &str, value: Value| (name.to_owned(), value);
    Value::Record(vec![
        field("kind", Value::Enum(kind, kind_name)),
        field("at_ns", optional(fields.at_ns.map(Value::Long))),
        field("stream", optional(fields.stream.map(stream))),
        field("offset", long(fields.offset)),
        field("to", optional(fields.to.map(long))),
        field("data", optional(fields.data.map(Value::Bytes))),
        field("json", optional(fields.json.map(Value::String))),
    ])
}

fn optional(value: Option<Value>) -> Value {
    match value {
        None => Value::Union(0, Box::new(Value::Null)),
        Some(value) => Value::Union(1, Box::new(value)),
    }
}
