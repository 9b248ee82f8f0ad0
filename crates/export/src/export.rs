//! Writing a whole journal in a format.

use std::io::{BufWriter, Write};

use ostler_journal::{ByteQuery, Journal};
use ostler_model::Cursor;
use ostler_report::{write_junit, write_sarif};

use crate::asciicast::{CastSink, CastVersion};
use crate::avro::AvroSink;
use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;
use crate::format::Format;
use crate::jsonl::JsonlSink;
use crate::merge::EntryMerge;
use crate::report::read_report;
use crate::yaml::YamlSink;

const BUFFER_BYTES: usize = 256 * 1024;

/// Writes the whole journal in a format.
///
/// # Errors
/// When the journal cannot be read or the receiver fails.
pub fn export(
    journal: &Journal,
    subject: &ExportSubject<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let head = ExportEntry::Execution {
        id: subject.id,
        spec: subject.spec,
    };
    let mut merge = EntryMerge::new(journal, subject, Cursor::START);
    match format {
        Format::Text => write_text(journal, &mut out)?,
        Format::Jsonl => {
            let mut sink = JsonlSink(&mut out);
            sink.entry(&head)?;
            merge.run(&mut sink)?;
        }
        Format::Yaml => {
            let mut sink = YamlSink(&mut out);
            sink.entry(&head)?;
            merge.run(&mut sink)?;
        }
        Format::Avro => {
            let mut sink = AvroSink::begin(&mut out)?;
            sink.entry(&head)?;
            merge.run(&mut sink)?;
            sink.finish()?;
        }
        Format::Asciicast => write_cast(&mut out, subject, merge, CastVersion::V2)?,
        Format::AsciicastV3 => write_cast(&mut out, subject, merge, CastVersion::V3)?,
        Format::Sarif => {
            let report = read_report(journal, subject)?;
            write_sarif(&report.report, &report.subject, &mut out)?;
        }
        Format::Junit => {
            let report = read_report(journal, subject)?;
            write_junit(&report.report, &report.subject, &mut out)?;
        }
    }
    Ok(out.flush()?)
}

fn write_cast(
    out: &mut dyn Write,
    subject: &ExportSubject<'_>,
    mut merge: EntryMerge<'_>,
    version: CastVersion,
) -> Result<(), ExportError> {
    let mut sink = CastSink::begin(out, subject, version)?;
    merge.run(&mut sink)?;
    sink.finish()
}

/// Writes the output of the command, and nothing else.
fn write_text(journal: &Journal, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut query = ByteQuery::starting_at(Cursor::START);
    loop {
        let page = journal.read(&query)?;
        for chunk in &page.chunks {
            out.write_all(&chunk.bytes)?;
        }
        query.from = page.next;
        if !page.more {
            return Ok(());
        }
    }
}
