//! Progress lines while services start, one for each, redrawn in place.

use std::time::Instant;

use ostler_api::{ExecutionBody, ServiceBody};
use ostler_render::clean;

use crate::attach::window_size;
use crate::context::CliContext;
use crate::output::{Style, StyledLine, line, redraw};

/// The default width of a terminal in columns.
const COLUMNS: usize = 80;
/// The width of the longest status in columns.
const STATUS_CHARS: usize = 13;
/// The most columns of a name.
const NAME_CHARS: usize = 24;

/// Lines on standard error, if that is a terminal.
#[derive(Debug)]
pub(super) struct ProgressLines {
    style: Style,
    is_enabled: bool,
    drawn_lines: usize,
    started: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgressRow {
    name: String,
    status: String,
    note: String,
}

impl ProgressLines {
    /// Disabled if standard error is not a terminal, or only JSON is requested.
    pub(super) fn new(context: &CliContext, json: bool) -> Self {
        let dumb = context.env.get("TERM").is_some_and(|term| term == "dumb");
        Self {
            style: Style::of_stderr(&context.env),
            is_enabled: Style::is_stderr_terminal() && !json && !dumb,
            drawn_lines: 0,
            started: Instant::now(),
        }
    }

    /// Whether lines are drawn.
    pub(super) const fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Draws the lines over those before.
    pub(super) fn draw(&mut self, rows: &[ProgressRow]) {
        if !self.is_enabled {
            return;
        }
        let columns = window_size().map_or(COLUMNS, |size| usize::from(size.cols));
        let width = rows
            .iter()
            .map(|row| StyledLine::from(&row.name).width())
            .max();
        let width = width.unwrap_or_default().min(NAME_CHARS);
        let lines: Vec<StyledLine> = rows
            .iter()
            .map(|row| self.line(row, width, columns))
            .collect();
        redraw(self.drawn_lines, &lines);
        self.drawn_lines = lines.len();
    }

    pub(super) fn clear(&mut self) {
        redraw(self.drawn_lines, &[]);
        self.drawn_lines = 0;
    }

    fn line(&self, row: &ProgressRow, width: usize, columns: usize) -> StyledLine {
        let time = format!("{}s", self.started.elapsed().as_secs());
        let used = width + STATUS_CHARS + time.len() + 6;
        let room = columns.saturating_sub(used + 1);
        line![
            StyledLine::from(&row.name)
                .shortened(NAME_CHARS)
                .padded(width),
            "  ",
            self.style.service(&row.status).padded(STATUS_CHARS),
            "  ",
            self.style.dim(&time),
            "  ",
            StyledLine::from(&row.note).shortened(room),
        ]
    }
}

impl ProgressRow {
    /// The row of a service, as far as it is known.
    pub(super) fn from_service(service: &ServiceBody) -> Self {
        let waiting_for = service.waits_for.as_ref();
        match service.execution.as_ref().filter(|_| waiting_for.is_none()) {
            Some(info) => Self {
                name: service.name.clone(),
                ..Self::from_info(info)
            },
            None => Self {
                name: service.name.clone(),
                status: service.status.clone(),
                note: waiting_for.map_or_else(String::new, |it| format!("waits for {it}")),
            },
        }
    }

    /// The row of an execution.
    pub(super) fn from_info(info: &ExecutionBody) -> Self {
        let Some(state) = info.service.as_deref() else {
            return Self {
                name: info.id.clone(),
                status: info.status.as_str().to_owned(),
                note: String::new(),
            };
        };
        let unhealthy = state.health.as_ref().filter(|health| !health.ok);
        let asks = state.prompt.as_ref();
        let note = match (unhealthy, &state.waits_for, &state.url) {
            _ if info.paused => "paused".to_owned(),
            (Some(ill), ..) => clean(&ill.detail).into_owned(),
            (None, Some(what), _) => {
                let waits = || format!("waits for {what}");
                let text = asks.map_or_else(waits, |it| format!("asks: {it}"));
                clean(&text).into_owned()
            }
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
