//! A terminal's screen, as needed to detect a prompt.

use ostler_terminal::{ScreenSnapshot, ShellState};
use unicode_width::UnicodeWidthChar;

use super::menu;

/// The part of a screen that can hold a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenPrompt {
    /// The cursor's row up to the cursor, blanks included: suggestions and right-hand prompts are
    /// after the cursor.
    pub line: String,
    /// The rows above it.
    pub before: String,
    /// The rows below it.
    pub after: String,
    /// Whether all rows below the cursor's are empty.
    pub lowest: bool,
    /// Whether the cursor is hidden: what is before it asks for nothing, as in `top`.
    pub cursor_hidden: bool,
    /// Whether a full-screen program is running: it shows the alternate screen, or has enabled the
    /// keypad or mouse modes.
    pub full_screen: bool,
    /// Whether an integrated shell reports that it accepts a command.
    pub at_shell_prompt: bool,
}

impl ScreenPrompt {
    /// Extracts it from a screen and the state of the shell.
    #[must_use]
    pub fn from_view(view: &ScreenSnapshot, shell: &ShellState) -> Self {
        let row = usize::from(view.cursor.row).min(view.rows.len());
        let (above, rest) = view.rows.split_at(row);
        let (line, below) = rest
            .split_first()
            .map_or(("", rest), |(line, below)| (line.as_str(), below));
        let modes = view.modes;
        Self {
            line: row_prefix(line, usize::from(view.cursor.col)),
            before: above.join("\n"),
            after: below.join("\n"),
            lowest: below.iter().all(|row| row.trim().is_empty()),
            cursor_hidden: !view.cursor.visible,
            full_screen: view.alternate
                || modes.application_cursor
                || modes.application_keypad
                || modes.mouse,
            at_shell_prompt: matches!(
                shell,
                ShellState::Prompt { .. } | ShellState::Incomplete { .. }
            ),
        }
    }

    /// The question of a menu that is moved in with the arrow keys: such programs hide the cursor.
    #[must_use]
    pub fn key_menu_question(&self) -> Option<&str> {
        let rows = self.before.lines();
        let rows = rows.chain([self.line.as_str()]).chain(self.after.lines());
        menu::key_menu_question(rows).filter(|_| self.cursor_hidden)
    }

    /// The prompt of a full-screen program: the lowest row, if the cursor is in it (`:` of less,
    /// `E325 ... (Q)uit:` of vim). Elsewhere the cursor is in the edited or displayed text.
    #[must_use]
    pub fn bottom_line(&self) -> &str {
        if self.lowest && !self.cursor_hidden {
            self.line.trim()
        } else {
            ""
        }
    }
}

/// The first `cells` cells of a row, padded with blanks.
fn row_prefix(row: &str, cells: usize) -> String {
    let (mut text, mut used) = (String::with_capacity(row.len()), 0);
    for it in row.chars() {
        let width = it.width().unwrap_or(0);
        if used + width > cells {
            break;
        }
        text.push(it);
        used += width;
    }
    text.extend(std::iter::repeat_n(' ', cells - used));
    text
}

#[cfg(test)]
mod tests {
    use ostler_model::TermSize;
    use ostler_terminal::Screen;

    use super::*;

    fn shown(text: &str) -> ScreenPrompt {
        let mut screen = Screen::new(TermSize { cols: 20, rows: 5 }, None);
        screen.feed(text.as_bytes());
        ScreenPrompt::from_view(&screen.snapshot(), screen.shell())
    }

    #[test]
    fn the_row_up_to_the_cursor() {
        for (text, line) in [
            ("one\r\nName: ", "Name: "),
            ("\x1b[1mName\x1b[0m: ", "Name: "),
            ("$ git\x1b[90m status\x1b[7D", "$ git"),
            ("loading 10%\rloading 20%\rName: \x1b[K", "Name: "),
            ("名前: ", "名前: "),
            ("", ""),
            ("> \x1b[14Gright\x1b[3G", "> "),
        ] {
            assert_eq!(shown(text).line, line, "{text:?}");
        }
        assert_eq!(shown("1) a\r\n2) b\r\n#? ").before, "1) a\n2) b");
    }

    #[test]
    fn menus_that_are_moved_in_with_keys() {
        let inquirer = "\x1b[?25l? Select:\r\n❯ Vanilla\r\n  Vue";
        let clack = "\x1b[?25l◆  Select:\r\n│  ● Vanilla\r\n│  ○ Vue\r\n└\r\n";
        for menu in [inquirer, clack] {
            assert_eq!(shown(menu).key_menu_question(), Some("Select:"), "{menu:?}");
        }
        for other in [
            "? Select:\r\n❯ Vanilla\r\n  Vue",
            "\x1b[?25l? Select: Vue\r\n❯ npm run dev",
            "\x1b[?25l❯ Vanilla\r\n  Vue",
        ] {
            assert_eq!(shown(other).key_menu_question(), None, "{other:?}");
        }
    }

    #[test]
    fn whole_screens() {
        let less = shown("\x1b[?1049h\x1b[?1h\x1b=text\x1b[5;1H:");
        assert!(less.full_screen && less.lowest);
        assert_eq!(less.bottom_line(), ":");
        let vim = shown("\x1b[?1049hPassword: \r\n~\r\n\x1b[5;1H1,1\x1b[1;11H");
        assert!(vim.full_screen && !vim.lowest);
        assert_eq!(vim.bottom_line(), "");
        assert!(!shown("Name: ").full_screen);
        let top = shown("\x1b[?1h\x1b[?25l\x1b[5;1Hcron");
        assert!(top.full_screen && top.lowest);
        assert_eq!(top.bottom_line(), "");
        assert!(!shown("\x1b[?1049h\x1b[?1049lName: ").full_screen);
    }
}
