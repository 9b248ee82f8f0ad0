//! What a person sees while services come up: a line each, drawn over in place.

use std::time::Instant;

use ostler_server::render::clean;
use ostler_server::wire::{InfoBody, ServiceBody};

use crate::attach::window_size;
use crate::output::{Line, Style, line, redraw};
use crate::setup::Setup;

/// Columns of a terminal that does not say.
const COLUMNS: usize = 80;
/// Columns of the longest status.
const STATUS_CHARS: usize = 13;
/// Columns of a name that are shown.
const NAME_CHARS: usize = 24;

/// Lines on standard error, where that is a terminal.
#[derive(Debug)]
pub(super) struct Board {
    style: Style,
    on: bool,
    drawn: usize,
    since: Instant,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    name: String,
    status: String,
    note: String,
}

impl Board {
    /// Nothing where nobody looks, and where only a document is wanted.
    pub(super) fn new(setup: &Setup, json: bool) -> Self {
        let dumb = setup.env.get("TERM").is_some_and(|term| term == "dumb");
        Self {
            style: Style::of_stderr(&setup.env),
            on: Style::is_stderr_terminal() && !json && !dumb,
            drawn: 0,
            since: Instant::now(),
        }
    }

    /// Whether somebody looks.
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Draws the lines in the place of those before.
    pub(super) fn draw(&mut self, rows: &[Row]) {
        if !self.on {
            return;
        }
        let columns = window_size().map_or(COLUMNS, |size| usize::from(size.cols));
        let width = rows.iter().map(|row| Line::from(&row.name).width()).max();
        let width = width.unwrap_or_default().min(NAME_CHARS);
        let lines: Vec<Line> = rows
            .iter()
            .map(|row| self.line(row, width, columns))
            .collect();
        redraw(self.drawn, &lines);
        self.drawn = lines.len();
    }

    /// Takes the lines away.
    pub(super) fn clear(&mut self) {
        redraw(self.drawn, &[]);
        self.drawn = 0;
    }

    fn line(&self, row: &Row, width: usize, columns: usize) -> Line {
        let time = format!("{}s", self.since.elapsed().as_secs());
        let used = width + STATUS_CHARS + time.len() + 6;
        let room = columns.saturating_sub(used + 1);
        line![
            Line::from(&row.name).shortened(NAME_CHARS).padded(width),
            "  ",
            self.style.service(&row.status).padded(STATUS_CHARS),
            "  ",
            self.style.dim(&time),
            "  ",
            Line::from(&row.note).shortened(room),
        ]
    }
}

impl Row {
    /// A service, as far as it is known.
    pub(super) fn of(service: &ServiceBody) -> Self {
        let waits = service.waits_for.as_ref();
        match service.execution.as_ref().filter(|_| waits.is_none()) {
            Some(info) => Self {
                name: service.name.clone(),
                ..Self::of_info(info)
            },
            None => Self {
                name: service.name.clone(),
                status: service.status.clone(),
                note: waits.map_or_else(String::new, |it| format!("waits for {it}")),
            },
        }
    }

    /// An execution.
    pub(super) fn of_info(info: &InfoBody) -> Self {
        let Some(state) = info.service.as_deref() else {
            return Self {
                name: info.id.clone(),
                status: info.status.as_str().to_owned(),
                note: String::new(),
            };
        };
        let ill = state.health.as_ref().filter(|health| !health.ok);
        let note = match (ill, &state.waits_for, &state.url) {
            (Some(ill), ..) => clean(&ill.detail).into_owned(),
            (None, Some(what), _) => clean(&format!("waits for {what}")).into_owned(),
            (None, None, Some(url)) => clean(url).into_owned(),
            (None, None, None) => String::new(),
        };
        Self {
            name: state.name.clone(),
            status: state.status.clone(),
            note,
        }
    }
}
