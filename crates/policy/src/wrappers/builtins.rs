//! Builtins and programs whose options set variables or change the machine: an unknown word may be
//! such an option.

use super::InnerCommands;
use crate::analysis::{ValueClass, VariableUse};
use crate::test_words::analyze_test;
use crate::word::CommandWord;

/// Unresolved words of such a program; none where `name` is another.
pub(super) fn analyze(name: &str, args: &[CommandWord]) -> Option<InnerCommands> {
    match name {
        "test" | "[" => {
            let test = analyze_test(args);
            Some(InnerCommands {
                unresolved: test.unresolved,
                uses: test.uses,
                ..InnerCommands::default()
            })
        }
        "printf" => Some(analyze_printf(args)),
        "wait" => Some(analyze_options(args, &["-p"], &[], ValueClass::Plain)),
        "date" => Some(analyze_options(
            args,
            &["-s", "-f", "--set", "--file"],
            &["-d", "--date", "-r"],
            ValueClass::Plain,
        )),
        "ps" => {
            // It takes options without a dash.
            let valued = ["-p", "-u", "-C", "-g"];
            Some(analyze_options(args, &[], &valued, ValueClass::Number))
        }
        _ => None,
    }
}

/// Checks `printf`: `-v NAME` evaluates an index in the name; options end at the format.
fn analyze_printf(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    for word in args {
        let may_be_option = word.unknown.at_start || word.text.starts_with('-');
        if !may_be_option || word.text == "--" {
            break;
        }
        if word.text.starts_with("-v") || (!word.is_certain() && word.text.starts_with('-')) {
            inner.unresolved.push("'printf' sets a variable".to_owned());
        }
        let what = "the options of 'printf'";
        inner
            .uses
            .extend(VariableUse::of_word(word, ValueClass::Plain, what));
    }
    inner
}

/// Adds words that may be options, except those after an option that takes a value.
fn analyze_options(
    args: &[CommandWord],
    rejected: &[&str],
    valued: &[&str],
    max_harmless: ValueClass,
) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let mut is_value = false;
    for word in args {
        if word.is_certain()
            && rejected
                .iter()
                .any(|it| crate::flags::is_flag(&word.text, it))
        {
            inner.unresolved.push(format!("'{}'", word.text));
        }
        let hidden = !word.is_certain() && (word.unknown.may_split || !is_value);
        if hidden && word.text.starts_with('-') {
            // The word before it may be empty.
            inner.unresolved.push(format!("'{}'", word.text));
        } else if hidden && (word.unknown.at_start || word.unknown.may_split) {
            inner
                .uses
                .extend(VariableUse::of_word(word, max_harmless, "options"));
        }
        is_value = word.is_certain() && valued.contains(&word.text.as_str());
    }
    inner
}
