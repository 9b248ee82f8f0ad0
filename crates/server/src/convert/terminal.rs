//! Screens of terminals.

use ostler_api::{ScreenBody, ScreenCursorBody, ScreenModesBody};
use ostler_terminal::ScreenSnapshot;

/// What is on a terminal's screen.
pub(crate) fn screen_body(screen: ScreenSnapshot) -> ScreenBody {
    ScreenBody {
        size: screen.size,
        rows: screen.rows,
        cursor: ScreenCursorBody {
            col: screen.cursor.col,
            row: screen.cursor.row,
            visible: screen.cursor.visible,
        },
        title: screen.title,
        alternate: screen.alternate,
        modes: ScreenModesBody {
            bracketed_paste: screen.modes.bracketed_paste,
            application_cursor: screen.modes.application_cursor,
            application_keypad: screen.modes.application_keypad,
            mouse: screen.modes.mouse,
        },
        offset: screen.offset,
        exact: screen.exact,
    }
}
