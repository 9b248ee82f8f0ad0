//! Exports agree with the journal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::Path;

use ostler_export::{ExportError, ExportSubject, Format, Mirror, export};
use ostler_journal::{Gap, Journal, OutputWriter};
use ostler_model::{Event, EventRecord, ExecutionId, StreamName, TermSize, Timestamp};
use serde_json::{Value, json};

/// One append to a journal.
struct JournalOp {
    at_ns: i64,
    stream: StreamName,
    bytes: Vec<u8>,
}

fn at(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at_ns)).unwrap()
}

fn writer(dir: &Path) -> OutputWriter {
    let handle = std::fs::File::open(dir).unwrap();
    OutputWriter::create(handle.as_fd(), Default::default()).unwrap()
}

/// Writes all of them to a new journal.
fn write(dir: &Path, ops: &[JournalOp]) -> Journal {
    let mut writer = writer(dir);
    for op in ops {
        writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
    }
    Journal::open(dir).unwrap()
}

fn ops() -> Vec<JournalOp> {
    let op = |at_ns, stream, bytes: &[u8]| JournalOp {
        at_ns,
        stream,
        bytes: bytes.to_vec(),
    };
    vec![
        op(1_500_000_000, StreamName::Stdout, "gr\u{fc}".as_bytes()),
        op(
            1_600_000_000,
            StreamName::Stdout,
            "n: \"yes\"\t\u{1b}[1m\u{7f}\u{85}\u{feff}\n".as_bytes(),
        ),
        op(1_700_000_000, StreamName::Stderr, b"half \xe6\xb1"),
        op(1_800_000_000, StreamName::Stderr, b"\x89 - # not: yaml\n"),
        op(2_000_000_000, StreamName::Stdin, b"\xff\n"),
        op(2_500_000_000, StreamName::Pty, b"a\r\nb\n"),
    ]
}

fn events() -> Vec<EventRecord> {
    let between = ops()[..2].iter().map(|op| op.bytes.len() as u64).sum();
    let record = |seq, at_ns, offset, event| EventRecord {
        seq,
        at: at(at_ns),
        offset,
        event,
    };
    vec![
        record(
            0,
            1_000_000_000,
            0,
            Event::Created {
                missing: Vec::new(),
            },
        ),
        record(
            1,
            1_650_000_000,
            between,
            Event::Resized {
                size: TermSize {
                    cols: 100,
                    rows: 40,
                },
            },
        ),
        record(2, 3_000_000_000, 1_000, Event::Adopted { attempt: 1 }),
    ]
}

fn exported(journal: &Journal, format: Format) -> Vec<u8> {
    let events = events();
    let subject = ExportSubject {
        id: ExecutionId::from_bytes([7; 16]),
        spec: None,
        events: &events,
    };
    let mut out = Vec::new();
    export(journal, &subject, format, &mut out).unwrap();
    out
}

/// The kinds and data of the entries of an export.
fn entries(values: &[Value]) -> Vec<(String, String)> {
    let one = |value: &Value| {
        let (event, data) = (&value["event"], &value["data"]);
        let data = match (data.as_str(), event.as_str()) {
            (Some(text), _) | (None, Some(text)) => text.to_owned(),
            (None, None) if data.is_null() => String::new(),
            (None, None) => data.to_string(),
        };
        (value["kind"].as_str().unwrap().to_owned(), data)
    };
    values.iter().map(one).collect()
}

fn jsonl(text: &[u8]) -> Vec<Value> {
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn jsonl_holds_everything_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let got = entries(&jsonl(&exported(&journal, Format::Jsonl)));
    let kinds: Vec<&str> = got.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "execution",
            "event",
            "output",
            "output",
            "event",
            "output",
            "output",
            "output",
            "output",
            "event"
        ]
    );
    assert_eq!(got[1].1, "created");
    assert_eq!(got[2].1, "grü");
    assert_eq!(got[5].1, r#"{"base64":"aGFsZiDmsQ=="}"#);
    assert_eq!(got[9].1, "adopted");
}

fn avro(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    use apache_avro::types::Value as Avro;
    let field = |fields: &[(String, Avro)], name: &str| {
        fields
            .iter()
            .find(|(key, _)| key == name)
            .unwrap()
            .1
            .clone()
    };
    let one = |value: Avro| {
        let Avro::Record(fields) = value else {
            panic!("{value:?}")
        };
        let Avro::Enum(_, kind) = field(&fields, "kind") else {
            panic!()
        };
        let Avro::Union(_, data) = field(&fields, "data") else {
            panic!()
        };
        (
            kind,
            if let Avro::Bytes(bytes) = *data {
                bytes
            } else {
                Vec::new()
            },
        )
    };
    apache_avro::Reader::new(bytes)
        .unwrap()
        .map(|value| one(value.unwrap()))
        .collect()
}

#[test]
fn avro_holds_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let got = avro(&exported(&journal, Format::Avro));
    assert_eq!(got.len(), 10);
    let output: Vec<Vec<u8>> = got
        .into_iter()
        .filter(|(kind, _)| kind == "output")
        .map(|(_, data)| data)
        .collect();
    assert_eq!(
        output,
        ops().into_iter().map(|op| op.bytes).collect::<Vec<_>>()
    );
}

#[test]
fn text_holds_what_was_printed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let printed: Vec<u8> = ops()
        .into_iter()
        .filter(|op| op.stream != StreamName::Stdin)
        .flat_map(|op| op.bytes)
        .collect();
    assert_eq!(exported(&journal, Format::Text), printed);
}

#[test]
fn a_cast_plays_whole_characters() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let lines = jsonl(&exported(&journal, Format::Asciicast));
    assert_eq!(
        (&lines[0]["version"], &lines[0]["width"]),
        (&Value::from(2), &Value::from(80))
    );
    let events: Vec<(f64, String, String)> = lines[1..]
        .iter()
        .map(|line| serde_json::from_value(line.clone()).unwrap())
        .collect();
    assert_eq!(events[0], (0.5, "o".to_owned(), "grü".to_owned()));
    assert!(events[1].2.ends_with("\r\n"));
    assert!(events.contains(&(0.65, "r".to_owned(), "100x40".to_owned())));
    let shown: String = events
        .iter()
        .filter(|one| one.1 == "o")
        .map(|one| one.2.as_str())
        .collect();
    assert!(
        shown.contains("half 汉 - # not: yaml\r\n") && shown.ends_with("a\r\nb\n"),
        "{shown:?}"
    );
    assert!(!shown.contains('\u{fffd}'));
}

#[test]
fn a_cast_of_version_3_has_the_same_events_at_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let events = |format| -> Vec<(f64, String, String)> {
        let lines = jsonl(&exported(&journal, format)).into_iter().skip(1);
        lines
            .map(|line| serde_json::from_value(line).unwrap())
            .collect()
    };
    let header = jsonl(&exported(&journal, Format::AsciicastV3)).remove(0);
    assert_eq!(header["version"], 3);
    assert_eq!(header["term"], json!({"cols": 80, "rows": 24}));
    let mut now = 0.0;
    let mut absolute: Vec<(f64, String, String)> = events(Format::AsciicastV3);
    for event in &mut absolute {
        assert!(event.0 >= 0.0, "{event:?}");
        now += event.0;
        event.0 = (now * 1e6_f64).round() / 1e6;
    }
    // What has not ended has no exit status.
    assert_eq!(absolute, events(Format::Asciicast));
}

#[test]
fn a_mirror_is_the_export_however_often_it_was_torn() {
    for (format, name) in [
        (Format::Yaml, "mirror.yaml"),
        (Format::Jsonl, "mirror.jsonl"),
        (Format::Avro, "mirror.avro"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let journal = Journal::open(dir.path()).unwrap();
        let events = events();
        let id = ExecutionId::from_bytes([7; 16]);
        for (place, op) in ops().iter().enumerate() {
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
            let known = events
                .iter()
                .filter(|event| event.offset <= writer.end())
                .count();
            let subject = ExportSubject {
                id,
                spec: None,
                events: &events[..known],
            };
            let mut mirror = Mirror::open(dir.path(), journal.clone(), format).unwrap();
            assert_eq!(mirror.advance(&subject).unwrap(), op.bytes.len() as u64);
            assert_eq!(mirror.advance(&subject).unwrap(), 0);
            // A crash in the middle of the next copy.
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(dir.path().join(name))
                .unwrap();
            file.write_all(&[b'x'; 40][..place * 7]).unwrap();
        }
        let subject = ExportSubject {
            id,
            spec: None,
            events: &events,
        };
        Mirror::open(dir.path(), journal.clone(), format)
            .unwrap()
            .advance(&subject)
            .unwrap();
        let copy = std::fs::read(dir.path().join(name)).unwrap();
        if format == Format::Avro {
            assert_eq!(avro(&copy), avro(&exported(&journal, format)));
        } else {
            assert!(copy == exported(&journal, format), "{name}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    assert!(Mirror::open(dir.path(), journal, Format::Text).is_err());
}

#[test]
fn a_mirror_holds_nothing_of_what_was_cleared() {
    for (format, name) in [
        (Format::Yaml, "mirror.yaml"),
        (Format::Jsonl, "mirror.jsonl"),
        (Format::Avro, "mirror.avro"),
    ] {
        // Continued by who had it open, by who opens it again, and after a version that knew no clears.
        for way in ["open", "opened again", "of before"] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = writer(dir.path());
            let journal = Journal::open(dir.path()).unwrap();
            let subject = ExportSubject {
                id: ExecutionId::from_bytes([7; 16]),
                spec: None,
                events: &[],
            };
            let holds = |text: &str| {
                let copy = std::fs::read(dir.path().join(name)).unwrap();
                copy.windows(text.len()).any(|it| it == text.as_bytes())
            };
            let mut append = |text: &str| {
                writer
                    .append(1_000_000_000, StreamName::Stdout, text.as_bytes())
                    .unwrap();
            };
            let mut mirror = Mirror::open(dir.path(), journal.clone(), format).unwrap();
            append("a secret\n");
            mirror.advance(&subject).unwrap();
            assert!(holds("a secret"), "{name}");
            journal.clear().unwrap();
            if way == "of before" {
                let path = dir.path().join("mirror.position");
                let text = std::fs::read(&path).unwrap();
                let mut position: Value = serde_json::from_slice(&text).unwrap();
                position.as_object_mut().unwrap().remove("cleared_to");
                std::fs::write(&path, position.to_string()).unwrap();
            }
            if way != "open" {
                mirror = Mirror::open(dir.path(), journal.clone(), format).unwrap();
            }
            append("later\n");
            mirror.advance(&subject).unwrap();
            assert!(!holds("a secret") && holds("later"), "{name}, {way}");
            append("last\n");
            mirror.advance(&subject).unwrap();
            assert!(holds("later") && holds("last"), "{name}, {way}");
            assert!(Mirror::remove_all(dir.path()).unwrap());
            assert!(!Mirror::remove_all(dir.path()).unwrap());
            assert!(!dir.path().join(name).exists());
        }
    }
}

/// Diagnostics of two streams with 50,000 lines between their parts.
#[test]
fn reports_are_read_over_many_pages() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut append = |stream, text: &str| {
        writer
            .append(1_000_000_000, stream, text.as_bytes())
            .unwrap();
    };
    append(StreamName::Stderr, "error[E0308]: mismatched types\n");
    let filler = "a line of a build\n".repeat(1_000);
    for _ in 0..50 {
        append(StreamName::Stdout, &filler);
    }
    // The place of the error, and the end of a line without a newline.
    append(StreamName::Stderr, " --> src/lib.rs:4:18\n");
    append(StreamName::Stdout, "a.c:1:2: error: no new");
    append(StreamName::Stdout, "line");
    let journal = Journal::open(dir.path()).unwrap();
    let log: Value = serde_json::from_slice(&exported(&journal, Format::Sarif)).unwrap();
    let found: Vec<String> = log["runs"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|run| run["results"].as_array().unwrap())
        .map(|result| {
            let output = &result["properties"]["output"];
            format!(
                "{} {} {}",
                result["message"]["text"], output["stream"], output["line"]
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            r#""mismatched types" "stderr" 1"#,
            r#""no newline" "stdout" 50001"#
        ]
    );
    let xml = String::from_utf8(exported(&journal, Format::Junit)).unwrap();
    assert!(
        xml.contains("<testsuite name=\"ostler\" tests=\"0\""),
        "{xml}"
    );
}

#[test]
fn output_that_was_cleared_is_named_in_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops());
    let end = journal.stats().unwrap().end;
    journal.clear().unwrap();
    let log: Value = serde_json::from_slice(&exported(&journal, Format::Sarif)).unwrap();
    let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    let text = format!("{end} bytes of output are gone and were not searched");
    assert!(notes.to_string().contains(&text), "{notes} {end}");
}

/// A receiver that removes output when it gets the first bytes of an export.
struct RemovesOutput<F: FnMut()> {
    remove: Option<F>,
    received: Vec<u8>,
}

impl<F: FnMut()> Write for RemovesOutput<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(mut remove) = self.remove.take() {
            remove();
        }
        self.received.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Exports 8 MB, of which `remove` removes what was not read yet.
fn export_and(
    format: Format,
    remove: impl FnMut(&Path),
) -> (Result<Vec<Gap>, ExportError>, Vec<u8>, u64) {
    const LINE: &[u8] = b"src/lib.rs:1:1: error: a line of a compiler\n";
    let dir = tempfile::tempdir().unwrap();
    let ops: Vec<JournalOp> = (0..128)
        .map(|at_ns| JournalOp {
            at_ns,
            stream: StreamName::Stdout,
            bytes: LINE.repeat(65_536 / LINE.len()),
        })
        .collect();
    let total = ops.iter().map(|op| op.bytes.len() as u64).sum();
    let journal = write(dir.path(), &ops);
    let mut remove = remove;
    let mut out = RemovesOutput {
        remove: Some(|| remove(dir.path())),
        received: Vec::new(),
    };
    let subject = ExportSubject {
        id: ExecutionId::from_bytes([7; 16]),
        spec: None,
        events: &[],
    };
    let result = export(&journal, &subject, format, &mut out);
    (result, out.received, total)
}

#[test]
fn an_export_fails_when_its_execution_is_removed_meanwhile() {
    let remove = |dir: &Path| {
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
    };
    for format in [
        Format::Text,
        Format::Jsonl,
        Format::Yaml,
        Format::Avro,
        Format::Asciicast,
    ] {
        let (result, received, total) = export_and(format, remove);
        let error = result.unwrap_err();
        assert!((received.len() as u64) < total, "{format:?}");
        assert!(
            matches!(error, ExportError::Incomplete { from, to } if from < to && to == total),
            "{format:?}: {error:?}"
        );
    }
}

#[test]
fn output_cleared_meanwhile_is_a_gap_or_an_error() {
    let clear = |dir: &Path| {
        let _range = Journal::open(dir).unwrap().clear().unwrap();
    };
    for format in [Format::Text, Format::Asciicast, Format::AsciicastV3] {
        let (result, received, total) = export_and(format, clear);
        let error = result.unwrap_err();
        assert!((received.len() as u64) < total, "{format:?}");
        assert!(
            matches!(error, ExportError::Incomplete { from, to } if from < to && to == total),
            "{format:?}: {error:?}"
        );
    }
    let (result, received, total) = export_and(Format::Jsonl, clear);
    let gaps = result.unwrap();
    let last = jsonl(&received).pop().unwrap();
    assert_eq!(
        (&last["kind"], &last["to"]),
        (&json!("gap"), &json!(total)),
        "{last}"
    );
    let [gap] = gaps[..] else {
        panic!("one gap: {gaps:?}");
    };
    assert_eq!((json!(gap.from), gap.to), (last["from"].clone(), total));
}
