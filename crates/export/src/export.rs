//! Writing a whole journal in a format.

use std::io::{BufWriter, Write};

use ostler_journal::{ByteQuery, Gap, Journal};
use ostler_model::Cursor;
use ostler_report::{write_junit, write_sarif};

use crate::asciicast::{CastSink, CastVersion};
use crate::avro::AvroSink;
use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;
use crate::extent::{ExportExtent, GapCheckSink};
use crate::format::Format;
use crate::jsonl::JsonlSink;
use crate::merge::EntryMerge;
use crate::report::read_report;
use crate::yaml::YamlSink;

const BUFFER_BYTES: usize = 256 * 1024;

/// Writes the whole journal in a format; returns what was missing, in order: at most a gap for each
/// file of the journal, and its ends. Formats that express gaps report what goes missing meanwhile
/// as a gap.
///
/// # Errors
/// When the journal cannot be read, the receiver fails, or output goes missing meanwhile and the
/// format cannot tell ([`ExportError::Incomplete`]).
pub fn export(
    journal: &Journal,
    subject: &ExportSubject<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<Vec<Gap>, ExportError> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let head = ExportEntry::Execution {
        id: subject.id,
        spec: subject.spec,
    };
    let extent = ExportExtent::of(journal)?;
    let mut merge = EntryMerge::new(journal, subject, Cursor::START);
    let gaps = match format {
        Format::Text => write_text(journal, &extent, &mut out)?,
        Format::Jsonl => {
            let mut sink = JsonlSink(&mut out);
            sink.entry(&head)?;
            run(&mut merge, &extent, &mut sink)?
        }
        Format::Yaml => {
            let mut sink = YamlSink(&mut out);
            sink.entry(&head)?;
            run(&mut merge, &extent, &mut sink)?
        }
        Format::Avro => {
            let mut sink = AvroSink::begin(&mut out)?;
            sink.entry(&head)?;
            let gaps = run(&mut merge, &extent, &mut sink)?;
            sink.finish()?;
            gaps
        }
        Format::Asciicast => write_cast(&mut out, subject, merge, &extent, CastVersion::V2)?,
        Format::AsciicastV3 => write_cast(&mut out, subject, merge, &extent, CastVersion::V3)?,
        Format::Sarif => {
            let report = read_report(journal, subject)?;
            write_sarif(&report.report, &report.subject, &mut out)?;
            report.gaps
        }
        Format::Junit => {
            let report = read_report(journal, subject)?;
            write_junit(&report.report, &report.subject, &mut out)?;
            report.gaps
        }
    };
    out.flush()?;
    Ok(gaps)
}

fn write_cast(
    out: &mut dyn Write,
    subject: &ExportSubject<'_>,
    mut merge: EntryMerge<'_>,
    extent: &ExportExtent<'_>,
    version: CastVersion,
) -> Result<Vec<Gap>, ExportError> {
    let mut sink = GapCheckSink {
        sink: CastSink::begin(out, subject, version)?,
        extent,
    };
    let gaps = run(&mut merge, extent, &mut sink)?;
    sink.sink.finish()?;
    Ok(gaps)
}

/// Writes every entry, at least those of the extent; returns the gaps.
fn run(
    merge: &mut EntryMerge<'_>,
    extent: &ExportExtent<'_>,
    sink: &mut dyn EntrySink,
) -> Result<Vec<Gap>, ExportError> {
    let mut sink = GapCollector {
        sink,
        gaps: Vec::new(),
    };
    merge.run(&mut sink)?;
    extent.check_reached(merge.cursor().offset)?;
    Ok(sink.gaps)
}

/// Collects the gaps among the entries that it passes on.
struct GapCollector<'a> {
    sink: &'a mut dyn EntrySink,
    gaps: Vec<Gap>,
}

impl EntrySink for GapCollector<'_> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        if let ExportEntry::Gap(gap) = entry {
            self.gaps.push(*gap);
        }
        self.sink.entry(entry)
    }
}

/// Writes the output of the command, and nothing else; returns the gaps. What was missing when the
/// export began is omitted.
fn write_text(
    journal: &Journal,
    extent: &ExportExtent<'_>,
    out: &mut dyn Write,
) -> Result<Vec<Gap>, ExportError> {
    let mut gaps = Vec::new();
    let mut query = ByteQuery::starting_at(Cursor::START);
    loop {
        let page = journal.read(&query)?;
        if let Some(gap) = page.gap {
            extent.check_gap(gap)?;
            gaps.push(gap);
        }
        for chunk in &page.chunks {
            out.write_all(&chunk.bytes)?;
        }
        query.from = page.next;
        if !page.more {
            extent.check_reached(query.from.offset)?;
            return Ok(gaps);
        }
    }
}
