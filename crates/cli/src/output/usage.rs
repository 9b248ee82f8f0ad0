//! Help, and usage errors.

use std::io::{self, Write as _};

use ostler_model::{ColourMode, visible_output};

use super::style::Style;
use crate::process_env::ProcessEnv;

/// Prints help on standard output, errors on standard error. The arguments in it are untrusted
/// text.
///
/// # Errors
/// When it cannot be written.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where text is made harmless"
)]
pub(crate) fn print_usage(error: &clap::Error, env: &ProcessEnv) -> io::Result<()> {
    if error.use_stderr() {
        let text = render_usage(error, Style::of_stderr(env));
        return io::stderr().write_all(text.as_bytes());
    }
    let text = render_usage(error, Style::of_stdout(env));
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn render_usage(error: &clap::Error, style: Style) -> String {
    let text = error.render();
    let text = match style.colours() {
        ColourMode::Keep => text.ansi().to_string(),
        ColourMode::Strip | ColourMode::Escape => text.to_string(),
    };
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |line| (line, "\n"));
        visible_output(line.as_bytes(), style.colours()) + end
    });
    lines.collect()
}
