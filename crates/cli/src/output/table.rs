//! Tables in columns.

use crate::error::CommandError;

use super::line::Line;
use super::out::Out;

const GAP: &str = "   ";

/// Rows under headings; every column as wide as its widest cell, the last one open.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<Line>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.iter().map(|&heading| heading.into()).collect(),
            rows: Vec::new(),
        }
    }

    /// One more row, a cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<Line>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    /// Cuts what is longer in this column, if there is such a one.
    pub(crate) fn shorten(&mut self, heading: &str, chars: usize) {
        let Some(column) = self.column(heading) else {
            return;
        };
        for row in &mut self.rows {
            row[column] = std::mem::take(&mut row[column]).shortened(chars);
        }
    }

    /// Cuts this column, if there is such a one, so that lines have at most `columns`
    /// characters; never below `least`.
    pub(crate) fn fit(&mut self, heading: &str, columns: usize, least: usize) {
        let widths = self.widths();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let beyond = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
        let width = self.column(heading).map(|column| widths[column]);
        if let Some(width) = width.filter(|_| beyond > 0) {
            self.shorten(heading, width.saturating_sub(beyond).max(least));
        }
    }

    fn column(&self, heading: &str) -> Option<usize> {
        let known = Line::from(heading);
        self.headings.iter().position(|it| *it == known)
    }

    /// Writes it out.
    pub(crate) fn print(&self, out: &mut Out) -> Result<(), CommandError> {
        self.lines().into_iter().try_for_each(|line| out.line(line))
    }

    /// Its lines, the headings first.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let widths = self.widths();
        std::iter::once(&self.headings)
            .chain(&self.rows)
            .map(|cells| line(cells, &widths))
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

fn line(cells: &[Line], widths: &[usize]) -> Line {
    let mut line = Line::default();
    for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let gap = if at == 0 { "" } else { GAP };
        line = line.and(gap).and(cell.clone().padded(width));
    }
    line.trimmed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{cells, line::Colour};

    #[test]
    fn columns_align_and_colours_take_no_room() {
        let mut table = Table::new(&["ID", "STATUS", "COMMAND"]);
        let failed = Line::coloured(Some(Colour::Red), "failed");
        table.row(cells!["k3v9x0qa", failed, "false"]);
        table.row(cells!["1", "completed", ""]);
        let lines: Vec<String> = table.lines().iter().map(Line::rendered).collect();
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
        let mut table = Table::new(&["ID", "COMMAND"]);
        table.row(cells!["k3v9x0qa", "a command that is long"]);
        table.fit("COMMAND", 20, 4);
        table.fit("LABELS", 20, 4);
        let lines: Vec<String> = table.lines().iter().map(Line::rendered).collect();
        assert_eq!(lines, ["ID         COMMAND", "k3v9x0qa   a comman…"]);
        table.fit("COMMAND", 10, 4);
        assert_eq!(table.lines()[1].rendered(), "k3v9x0qa   a c…");
    }
}
