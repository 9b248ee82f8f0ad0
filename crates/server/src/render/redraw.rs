//! Lines that draw over earlier lines: progress of several rows, spinners, screens that are
//! cleared. A [`Fold`] leaves the last state of each row and counts the lines that went into
//! it.

use super::clean::{Cells, clean};
use super::rows::Row;
use super::tokens::{CELLS, Token, Tokens, is_plain};
use ostler_model::StreamName;

/// Rows above the cursor that can still be drawn over, like a terminal's screen.
const SCREEN_ROWS: usize = 256;
/// Times one line goes to another row; further movements are not carried out.
const LINE_MOVES: usize = 512;

/// Takes lines in their order, gives rows as a terminal would have left them.
#[derive(Debug, Default)]
pub struct Fold {
    /// Rows in the order in which they came up; none where one was erased.
    rows: Vec<Option<Row>>,
    lanes: Vec<Lane>,
}

/// The screen of one stream.
#[derive(Debug)]
struct Lane {
    stream: StreamName,
    /// Its last rows, as places in [`Fold::rows`].
    places: Vec<usize>,
    /// The row the cursor is in; behind the last means on a fresh row.
    at: usize,
    /// The row that is the topmost of a screen that was cleared.
    top: Option<usize>,
}

/// A line on its way onto the screen.
struct Pen {
    cells: Cells,
    /// Lines and bytes of rows that were erased.
    lines: u64,
    bytes: u64,
    /// How often it went to another row.
    moves: usize,
}

impl Fold {
    /// Takes in one line; its text is as printed.
    pub fn line(&mut self, row: Row) {
        let lane = self.lane(row.stream);
        self.lanes[lane].trim();
        let fresh = self.lanes[lane].is_fresh();
        if fresh && is_plain(&row.text) {
            return self.append(lane, row);
        }
        self.draw(lane, row);
    }

    /// Takes in one line that can be no part of a redraw.
    pub fn whole_line(&mut self, row: Row) {
        let lane = self.lane(row.stream);
        self.lanes[lane].at = self.lanes[lane].places.len();
        let text = clean(&row.text).into_owned();
        self.append(lane, Row { text, ..row });
    }

    /// The row that began at this offset, to put right what it shows.
    pub fn row_at_offset(&mut self, offset: u64) -> Option<&mut Row> {
        let mut rows = self.rows.iter_mut().rev().flatten();
        rows.find(|row| row.offset == offset)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What is left on the screen and above it.
    #[must_use]
    pub fn finish(mut self) -> Vec<Row> {
        for lane in std::mem::take(&mut self.lanes) {
            self.drop_blank(&lane);
        }
        self.rows.into_iter().flatten().collect()
    }

    fn lane(&mut self, stream: StreamName) -> usize {
        let place = self.lanes.iter().position(|lane| lane.stream == stream);
        place.unwrap_or_else(|| {
            self.lanes.push(Lane {
                stream,
                places: Vec::new(),
                at: 0,
                top: None,
            });
            self.lanes.len() - 1
        })
    }

    fn append(&mut self, lane: usize, row: Row) {
        let lane = &mut self.lanes[lane];
        lane.places.push(self.rows.len());
        lane.at = lane.places.len();
        self.rows.push(Some(row));
    }

    fn draw(&mut self, lane: usize, line: Row) {
        let mut pen = self.pen(lane, 0);
        for token in Tokens::of(&line.text) {
            match token {
                Token::Control(action, number) => {
                    self.control(lane, &mut pen, (action, number), &line);
                }
                Token::Put(_) | Token::Return | Token::Back => pen.cells.take(token),
            }
        }
        self.end_line(lane, pen, line);
    }

    /// The row the cursor is in, ready to be drawn on.
    fn pen(&self, lane: usize, column: usize) -> Pen {
        let cells = match self.row_at(lane) {
            Some(row) => Cells::showing(&row.text, column),
            None => Cells::showing("", column),
        };
        Pen {
            cells,
            lines: 0,
            bytes: 0,
            moves: 0,
        }
    }

    fn row_at(&self, lane: usize) -> Option<&Row> {
        let lane = &self.lanes[lane];
        let place = *lane.places.get(lane.at)?;
        self.rows[place].as_ref()
    }

    /// Movements between rows, and what erases other rows; the rest stays in the row.
    fn control(
        &mut self,
        lane: usize,
        pen: &mut Pen,
        (action, number): (char, Option<usize>),
        line: &Row,
    ) {
        let steps = number.unwrap_or(1).max(1);
        let at = self.lanes[lane].at;
        match (action, number.unwrap_or(0)) {
            ('A', _) => self.go(lane, pen, at.saturating_sub(steps), line),
            ('B', _) => self.go(lane, pen, at + steps, line),
            ('F', _) => {
                self.go(lane, pen, at.saturating_sub(steps), line);
                pen.cells.column = 0;
            }
            ('E', _) => {
                self.go(lane, pen, at + steps, line);
                pen.cells.column = 0;
            }
            ('H' | 'f', _) => {
                let top = self.lanes[lane].home();
                self.go(lane, pen, top + steps - 1, line);
                pen.cells.column = 0;
            }
            ('J', 0) => {
                pen.cells.take(Token::Control('K', None));
                self.erase(lane, pen, at + 1);
            }
            ('J', 2 | 3) => {
                let top = self.lanes[lane].home();
                self.erase(lane, pen, top);
                self.lanes[lane].at = top;
                pen.cells.take(Token::Control('K', Some(2)));
            }
            _ => pen.cells.take(Token::Control(action, number)),
        }
    }

    /// Puts down the row the pen is on and takes up another.
    fn go(&mut self, lane: usize, pen: &mut Pen, to: usize, line: &Row) {
        if pen.moves == LINE_MOVES {
            return;
        }
        self.put_down(lane, pen, line);
        let places = self.lanes[lane].places.len();
        self.lanes[lane].at = to.min(places);
        let column = pen.cells.column.min(CELLS);
        let Pen {
            lines,
            bytes,
            moves,
            ..
        } = *pen;
        *pen = Pen {
            lines,
            bytes,
            moves: moves + 1,
            ..self.pen(lane, column)
        };
    }

    /// Writes what was drawn into its row; makes one where something was drawn on a fresh one.
    fn put_down(&mut self, lane: usize, pen: &mut Pen, line: &Row) {
        let column = pen.cells.column;
        let cells = std::mem::take(&mut pen.cells);
        pen.cells.column = column;
        let fresh = self.lanes[lane].is_fresh();
        if fresh && cells.is_empty() {
            return;
        }
        if fresh {
            self.append(
                lane,
                Row {
                    lines: 0,
                    bytes: 0,
                    text: cells.text(),
                    ..line.clone()
                },
            );
            return;
        }
        let lane = &self.lanes[lane];
        if let Some(row) = &mut self.rows[lane.places[lane.at]] {
            row.text = cells.text();
        }
    }

    /// Takes the rows from `from` on off the screen; what was counted for them goes with the
    /// line that did it.
    fn erase(&mut self, lane: usize, pen: &mut Pen, from: usize) {
        let from = from.min(self.lanes[lane].places.len());
        for place in self.lanes[lane].places.split_off(from) {
            if let Some(row) = self.rows[place].take() {
                pen.lines += row.lines;
                pen.bytes += row.bytes;
            }
        }
    }

    /// The line is over: it counts for the row it ended in.
    fn end_line(&mut self, lane: usize, pen: Pen, line: Row) {
        let lines = line.lines + pen.lines;
        let bytes = line.bytes + pen.bytes;
        if !self.lanes[lane].is_fresh() {
            let place = self.lanes[lane].places[self.lanes[lane].at];
            if let Some(row) = &mut self.rows[place] {
                row.text = pen.cells.text();
                row.at = line.at;
                row.lines += lines;
                row.bytes += bytes;
            }
            self.lanes[lane].at += 1;
            return;
        }
        let unused = pen.moves > 0 && pen.cells.is_empty();
        let last = self.lanes[lane].places.last().copied().filter(|_| unused);
        if let Some(row) = last.and_then(|place| self.rows[place].as_mut()) {
            row.lines += lines;
            row.bytes += bytes;
            return;
        }
        let text = pen.cells.text();
        self.append(
            lane,
            Row {
                text,
                lines,
                bytes,
                ..line
            },
        );
    }

    /// Rows below the cursor that were erased are not shown; they count for the one above.
    fn drop_blank(&mut self, lane: &Lane) {
        let mut places = lane.places.clone();
        while places.len() > lane.at.max(1) {
            let (last, above) = (places[places.len() - 1], places[places.len() - 2]);
            let blank = self.rows[last]
                .as_ref()
                .is_none_or(|row| row.text.trim().is_empty());
            if !blank {
                return;
            }
            if let (Some(row), Some(kept)) = (self.rows[last].take(), &mut self.rows[above]) {
                kept.lines += row.lines;
                kept.bytes += row.bytes;
            }
            places.pop();
        }
    }
}

impl Lane {
    const fn is_fresh(&self) -> bool {
        self.at >= self.places.len()
    }

    /// The topmost row; the first time it is asked for, all before it has scrolled away.
    fn home(&mut self) -> usize {
        let at = self.at;
        *self.top.get_or_insert(at)
    }

    /// Forgets rows that cannot be reached any more.
    fn trim(&mut self) {
        if self.places.len() < 2 * SCREEN_ROWS {
            return;
        }
        let gone = self.places.len() - SCREEN_ROWS;
        self.places.drain(..gone);
        self.at = self.at.saturating_sub(gone);
        self.top = self.top.map(|top| top.saturating_sub(gone));
    }
}

#[cfg(test)]
#[path = "redraw_tests.rs"]
mod tests;
