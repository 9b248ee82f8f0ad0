//! What tools reported in the output of a journal.

use ostler_journal::{
    Decoder, Encoding, Gap, Journal, JournalLine, LineQuery, OpenLineMode, encoding_for_label,
};
use ostler_model::{Cursor, Event, EventRecord};
use ostler_report::limits::LINE_BYTES;
use ostler_report::{OutputPosition, RawLine, Report, ReportCollector, ReportSubject};

use crate::entry::ExportSubject;
use crate::error::ExportError;
use crate::extent::ExportExtent;

/// The report of an execution.
#[derive(Debug)]
pub struct JournalReport<'a> {
    /// What was recognised.
    pub report: Report,
    /// The execution.
    pub subject: ReportSubject<'a>,
    /// What was missing of its output, in order.
    pub gaps: Vec<Gap>,
}

/// Reads the whole output in pages and returns what is recognised in it.
///
/// # Errors
/// When the journal cannot be read, or output that was there at first is removed meanwhile
/// ([`ExportError::Incomplete`]).
pub fn read_report<'a>(
    journal: &Journal,
    subject: &ExportSubject<'a>,
) -> Result<JournalReport<'a>, ExportError> {
    let extent = ExportExtent::of(journal)?;
    let mut collector = ReportCollector::default();
    let mut gaps: Vec<Gap> = Vec::new();
    let encoding = encoding(subject);
    let mut query = LineQuery {
        from: Some(Cursor::START),
        unfinished: OpenLineMode::Final,
        count_omitted: false,
        max_line_bytes: LINE_BYTES as u64,
        ..LineQuery::default()
    };
    loop {
        let page = journal.lines(&query)?;
        gaps.extend(page.gap);
        for line in &page.lines {
            collect_line(&mut collector, line, encoding);
        }
        query.from = Some(page.next);
        if !page.more {
            extent.check_reached(page.next.offset)?;
            break;
        }
    }
    Ok(JournalReport {
        report: collector.finish(),
        subject: report_subject(subject, gaps.iter().map(|gap| gap.to - gap.from).sum()),
        gaps,
    })
}

fn collect_line(collector: &mut ReportCollector, line: &JournalLine, encoding: Encoding) {
    let mut decoder = Decoder::new(encoding);
    let mut text = decoder.push(&line.bytes);
    text.push_str(&decoder.finish());
    collector.line(&RawLine {
        position: OutputPosition {
            stream: line.stream,
            line: line.number,
            offset: line.offset,
        },
        text: &text,
    });
}

fn encoding(subject: &ExportSubject<'_>) -> Encoding {
    let label = subject.spec.and_then(|spec| spec.encoding.as_deref());
    let encoding = label.and_then(|label| encoding_for_label(label).ok());
    encoding.unwrap_or(Encoding::UTF_8)
}

fn report_subject<'a>(subject: &ExportSubject<'a>, missing_bytes: u64) -> ReportSubject<'a> {
    let spec = subject.spec;
    let is_start = |record: &&EventRecord| matches!(record.event, Event::Started { .. });
    let started = subject.events.iter().find(is_start);
    let mut newest_first = subject.events.iter().rev();
    let finished = newest_first.find_map(|record| {
        let Event::Finished { ending } = &record.event else {
            return None;
        };
        Some((record.at, ending))
    });
    ReportSubject {
        id: subject.id,
        command: spec.map_or_else(String::new, |spec| spec.command.display()),
        cwd: spec.map_or_else(String::new, |spec| spec.cwd.to_string()),
        started_at: started.map(|record| record.at),
        ended_at: finished.map(|(at, _)| at),
        ending: finished.map(|(_, ending)| ending),
        missing_bytes,
    }
}
