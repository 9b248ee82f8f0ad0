//! The reference of the command line and of the settings: rendered from their definitions, and compared
//! with the files in `docs` that are checked in.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::commands::args::Cli;
use crate::config::KEYS;

/// Set, the files are written instead of compared.
const UPDATE_VARIABLE: &str = "OSTLER_UPDATE_REFERENCE";
/// The columns of help texts.
const WIDTH: usize = 100;

/// The heading of the options that every command takes.
const CONFIGURATION: &str = "Configuration:";

const COMMAND_LINE_HEAD: &str = "# The command line\n\n\
    What `--help` prints for each command; every command takes the options of `ostler` itself, too. This file is generated and compared by the tests;\n\
    to write it again: `OSTLER_UPDATE_REFERENCE=1 cargo nextest run -p ostler-cli reference`.\n";
const SETTINGS_HEAD: &str = "# Settings\n\n\
    Each setting has a key for `config.toml` and `--set KEY=VALUE`, and environment variables. Flags win over variables,\n\
    variables over the file, the file over the default. The file is `$XDG_CONFIG_HOME/ostler/config.toml`; for root after\n\
    `/etc/ostler/config.toml`; instead of both the one that `--config` or `OSTLER_CONFIG` names. `ostler config explain`\n\
    shows the values and where each comes from. This file is generated and compared by the tests; to write it again:\n\
    `OSTLER_UPDATE_REFERENCE=1 cargo nextest run -p ostler-cli reference`.\n\n\
    | key | variables | values | default | meaning |\n|---|---|---|---|---|\n";

#[test]
fn the_reference_of_the_command_line_is_that_of_its_definition() {
    let mut root = Cli::command()
        .disable_help_subcommand(true)
        .term_width(WIDTH);
    root.build();
    let mut text = COMMAND_LINE_HEAD.to_owned();
    write_command(&mut text, &root, "");
    compare("command-line.md", &text);
}

#[test]
fn the_reference_of_the_settings_is_that_of_their_table() {
    let mut text = SETTINGS_HEAD.to_owned();
    for key in KEYS {
        let variables = key.variables.iter().map(|it| format!("`{it}`"));
        let variables = variables.collect::<Vec<_>>().join(", ");
        let default = key
            .default
            .map_or("", |it| if it.is_empty() { "empty" } else { it });
        let cells = [key.kind.allowed(), default.to_owned(), key.help.to_owned()];
        let [allowed, default, help] = cells.map(|cell| cell.replace('|', "\\|"));
        let _infallible = writeln!(
            text,
            "| `{}` | {variables} | {allowed} | {default} | {help} |",
            key.name
        );
    }
    compare("settings.md", &text);
}

/// Appends the help of a command and, after it, of those below it; hidden ones are left out.
fn write_command(text: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    let name = name.trim_start();
    let help = command.clone().render_long_help().to_string();
    let mut lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    if !above.is_empty() {
        remove_section(&mut lines, CONFIGURATION);
    }
    let help = lines.join("\n");
    let _infallible = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    for below in shown.filter(|it| it.get_name() != "help") {
        write_command(text, below, name);
    }
}

/// Removes a heading with what is indented below it.
fn remove_section(lines: &mut Vec<&str>, heading: &str) {
    let Some(from) = lines.iter().position(|line| *line == heading) else {
        return;
    };
    let is_below = |line: &&str| line.is_empty() || line.starts_with(' ');
    let below = lines[from + 1..]
        .iter()
        .take_while(|line| is_below(line))
        .count();
    lines.drain(from..=from + below);
}

fn compare(name: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        std::fs::write(&path, rendered).expect("docs can be written");
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = rendered
        .lines()
        .zip(checked_in.lines())
        .find(|(one, other)| one != other);
    assert!(
        rendered == checked_in,
        "docs/{name} is not what the definitions say: set {UPDATE_VARIABLE}=1 and run this test again; \
         first difference: {differs:?}"
    );
}
