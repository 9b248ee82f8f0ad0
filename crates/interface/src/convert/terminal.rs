//! Screens of terminals.

use ostler_api::{ScreenBody, ScreenCursorBody, ScreenModesBody};
use ostler_terminal::ScreenSnapshot;

/// The body of a terminal's screen.
pub fn screen_body(screen: ScreenSnapshot) -> ScreenBody {
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

#[cfg(test)]
mod tests {
    use ostler_model::TermSize;
    use ostler_terminal::Screen;

    use super::screen_body;

    #[test]
    fn the_body_is_the_snapshot_in_json() {
        let size = TermSize { cols: 20, rows: 3 };
        let mut screen = Screen::new(size, None);
        screen.feed(b"\x1b]2;title\x07\x1b[?1049h\x1b[?2004hone\r\ntwo");
        let snapshot = screen.snapshot();
        let expected = serde_json::to_value(&snapshot).expect("JSON");
        let body = serde_json::to_value(screen_body(snapshot)).expect("JSON");
        assert_eq!(body, expected);
        assert_eq!(body["rows"], serde_json::json!(["one", "two", ""]));
        assert_eq!(body["modes"]["bracketed_paste"], true);
    }
}
