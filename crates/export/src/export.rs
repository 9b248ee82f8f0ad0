//! Writing a whole journal in a format.

use std::io::{BufWriter, Write};

use ostler_journal::{ByteQuery, Gap, Journal};
use ostler_model::Cursor;
use ostler_report::{write_junit, write_sarif};

use crate::asciicast::{CastSink, CastVersion};
use crate::avro::AvroSink;
use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::{ExportError, check_reached};
use crate::format::Format;
use crate::jsonl::JsonlSink;
use crate::merge::EntryMerge;
use crate::report::read_report;
use crate::yaml::YamlSink;

const BUFFER_BYTES: usize = 256 * 1024;

/// Writes the whole journal in a format. Formats that express gaps report what is cleared or
/// trimmed meanwhile as a gap.
///
/// # Errors
/// When the journal cannot be read, the receiver fails, or output goes missing meanwhile and the
/// format cannot tell ([`ExportError::Incomplete`]).
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
    let end = journal.end()?;
    let mut merge = EntryMerge::new(journal, subject, Cursor::START);
    match format {
        Format::Text => write_text(journal, end, &mut out)?,
        Format::Jsonl => {
            let mut sink = JsonlSink(&mut out);
            sink.entry(&head)?;
            run_to(&mut merge, end, &mut sink)?;
        }
        Format::Yaml => {
            let mut sink = YamlSink(&mut out);
            sink.entry(&head)?;
            run_to(&mut merge, end, &mut sink)?;
        }
        Format::Avro => {
            let mut sink = AvroSink::begin(&mut out)?;
            sink.entry(&head)?;
            run_to(&mut merge, end, &mut sink)?;
            sink.finish()?;
        }
        Format::Asciicast => write_cast(&mut out, subject, merge, end, CastVersion::V2)?,
        Format::AsciicastV3 => write_cast(&mut out, subject, merge, end, CastVersion::V3)?,
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
    end: u64,
    version: CastVersion,
) -> Result<(), ExportError> {
    let mut sink = CastSink::begin(out, subject, version)?;
    run_to(&mut merge, end, &mut sink)?;
    sink.finish()
}

/// Writes every entry; an error where the journal stops before `end`, where it ended at first.
fn run_to(
    merge: &mut EntryMerge<'_>,
    end: u64,
    sink: &mut dyn EntrySink,
) -> Result<(), ExportError> {
    merge.run(sink)?;
    check_reached(merge.cursor().offset, end)
}

/// Writes the output of the command, and nothing else. What was missing when the export began is
/// omitted; `end` is where the journal ended then.
fn write_text(journal: &Journal, end: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    let missing = journal.gaps()?;
    let mut query = ByteQuery::starting_at(Cursor::START);
    loop {
        let page = journal.read(&query)?;
        if let Some(gap) = page.gap {
            check_missing_before(&missing, gap, end)?;
        }
        for chunk in &page.chunks {
            out.write_all(&chunk.bytes)?;
        }
        query.from = page.next;
        if !page.more {
            return check_reached(query.from.offset, end);
        }
    }
}

/// Checks that a gap consists of `missing` ranges, which are in order, and of what came after `end`.
fn check_missing_before(missing: &[Gap], gap: Gap, end: u64) -> Result<(), ExportError> {
    let mut from = gap.from;
    for earlier in missing {
        if earlier.from <= from {
            from = from.max(earlier.to);
        }
    }
    let to = gap.to.min(end);
    match from < to {
        true => Err(ExportError::Incomplete { from, to }),
        false => Ok(()),
    }
}
