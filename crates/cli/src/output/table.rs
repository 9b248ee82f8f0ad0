//! Tables in columns.

use crate::error::CommandError;

use super::stdout::StdoutWriter;
use super::styled_line::StyledLine;

const GAP: &str = "   ";

/// Rows under headings; every column as wide as its widest cell, the last one unpadded.
#[derive(Debug)]
pub(crate) struct TextTable {
    headings: Vec<StyledLine>,
    rows: Vec<Vec<StyledLine>>,
}

impl TextTable {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.iter().map(|&heading| heading.into()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with a cell for each heading.
    pub(crate) fn push_row(&mut self, cells: Vec<StyledLine>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    /// Shortens cells in this column, if it exists.
    pub(crate) fn shorten(&mut self, heading: &str, chars: usize) {
        let Some(column) = self.column(heading) else {
            return;
        };
        for row in &mut self.rows {
            row[column] = std::mem::take(&mut row[column]).shortened(chars);
        }
    }

    /// Shortens this column, if it exists, so that lines have at most `columns` characters; never
    /// below `min_chars`.
    pub(crate) fn fit_width(&mut self, heading: &str, columns: usize, min_chars: usize) {
        let widths = self.widths();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
        let width = self.column(heading).map(|column| widths[column]);
        if let Some(width) = width.filter(|_| excess > 0) {
            self.shorten(heading, width.saturating_sub(excess).max(min_chars));
        }
    }

    fn column(&self, heading: &str) -> Option<usize> {
        let heading_line = StyledLine::from(heading);
        self.headings.iter().position(|it| *it == heading_line)
    }

    pub(crate) fn print(&self, out: &mut StdoutWriter) -> Result<(), CommandError> {
        self.lines()
            .into_iter()
            .try_for_each(|line| out.write_line(line))
    }

    /// The lines, the headings first.
    pub(crate) fn lines(&self) -> Vec<StyledLine> {
        let widths = self.widths();
        std::iter::once(&self.headings)
            .chain(&self.rows)
            .map(|cells| render_row(cells, &widths))
            .collect()
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].width());
        self.headings
            .iter()
            .enumerate()
            .map(|(column, heading)| cells(column).fold(heading.width(), usize::max))
            .collect()
    }
}

fn render_row(cells: &[StyledLine], widths: &[usize]) -> StyledLine {
    let mut line = StyledLine::default();
    for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let gap = if at == 0 { "" } else { GAP };
        line = line.and(gap).and(cell.clone().padded(width));
    }
    line.trimmed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{cells, styled_line::Colour};

    #[test]
    fn columns_align_and_colours_take_no_room() {
        let mut table = TextTable::new(&["ID", "STATUS", "COMMAND"]);
        let failed = StyledLine::coloured(Some(Colour::Red), "failed");
        table.push_row(cells!["k3v9x0qa", failed, "false"]);
        table.push_row(cells!["1", "completed", ""]);
        let lines: Vec<String> = table.lines().iter().map(StyledLine::rendered).collect();
        assert_eq!(
            lines,
            [
                "ID         STATUS      COMMAND",
                "k3v9x0qa   \x1b[31mfailed\x1b[0m      false",
                "1          completed",
            ]
        );
    }

    #[test]
    fn a_column_is_cut_until_lines_fit() {
        let mut table = TextTable::new(&["ID", "COMMAND"]);
        table.push_row(cells!["k3v9x0qa", "a command that is long"]);
        table.fit_width("COMMAND", 20, 4);
        table.fit_width("LABELS", 20, 4);
        let lines: Vec<String> = table.lines().iter().map(StyledLine::rendered).collect();
        assert_eq!(lines, ["ID         COMMAND", "k3v9x0qa   a comman…"]);
        table.fit_width("COMMAND", 10, 4);
        assert_eq!(table.lines()[1].rendered(), "k3v9x0qa   a c…");
    }
}
