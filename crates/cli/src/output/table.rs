//! Tables in columns.

use crate::error::CommandError;

use super::out::Out;

const GAP: &str = "   ";

/// Rows under headings; every column as wide as its widest cell, the last one open.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row, a cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    /// Writes it out.
    pub(crate) fn print(&self, out: &mut Out) -> Result<(), CommandError> {
        self.lines().iter().try_for_each(|line| out.line(line))
    }

    fn lines(&self) -> Vec<String> {
        let headings: Vec<String> = self.headings.iter().map(|&h| h.to_owned()).collect();
        let widths = self.widths();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|cells| line(cells, &widths))
            .collect()
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().map(move |row| width(&row[column]));
        self.headings
            .iter()
            .enumerate()
            .map(|(column, heading)| cells(column).fold(width(heading), usize::max))
            .collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, &wanted)| {
        let padding = " ".repeat(wanted.saturating_sub(width(cell)));
        format!("{cell}{padding}")
    });
    let line = padded.collect::<Vec<_>>().join(GAP);
    line.trim_end().to_owned()
}

/// Characters a terminal shows: colours take no room.
fn width(cell: &str) -> usize {
    let mut shown = 0;
    let mut in_escape = false;
    for character in cell.chars() {
        match (in_escape, character) {
            (false, '\x1b') => in_escape = true,
            (true, 'm') => in_escape = false,
            (false, _) => shown += 1,
            (true, _) => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_colours_take_no_room() {
        let mut table = Table::new(&["ID", "STATUS", "COMMAND"]);
        let cells = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.row(cells(["k3v9x0qa", "\x1b[31mfailed\x1b[0m", "false"]));
        table.row(cells(["1", "completed", ""]));
        assert_eq!(
            table.lines(),
            [
                "ID         STATUS      COMMAND",
                "k3v9x0qa   \x1b[31mfailed\x1b[0m      false",
                "1          completed",
            ]
        );
    }
}
