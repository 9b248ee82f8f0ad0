//! Programs whose options set variables or the machine: a word that is not known may be one.

use super::Given;
use crate::seen::{Use, Value};
use crate::word::Word;

/// Doubts about the words of such a program; none where `name` is another.
pub(super) fn look(name: &str, args: &[Word]) -> Option<Given> {
    match name {
        "test" | "[" => Some(tested(args)),
        "printf" => Some(before_the_format(args)),
        "wait" => Some(options(args, &["-p"], &[], Value::Plain)),
        "date" => Some(options(
            args,
            &["-s", "-f", "--set", "--file"],
            &["-d", "--date", "-r"],
            Value::Plain,
        )),
        "ps" => {
            // It takes options without a dash.
            let valued = ["-p", "-u", "-C", "-g"];
            Some(options(args, &[], &valued, Value::Number))
        }
        _ => None,
    }
}

fn uses(given: &mut Given, word: &Word, most: Value, what: &str) {
    let names = word.unknown.from.iter();
    given.uses.extend(names.map(|name| Use {
        name: name.clone(),
        most,
        what: what.to_owned(),
    }));
}

/// `-v NAME` and `-R NAME` evaluate an index in the name. Which words are operators follows
/// from their places, so a word that is not known must neither become several nor stand before
/// one that could be evaluated.
pub(crate) fn tested(words: &[Word]) -> Given {
    let mut given = Given::default();
    for word in words.iter().filter(|word| word.unknown.splits) {
        uses(&mut given, word, Value::Plain, "a test");
    }
    for pair in words.windows(2) {
        let [operator, operand] = pair else { continue };
        let evaluates = !operand.is_sure() || operand.text.contains('[');
        let named = !operator.is_sure() && operator.text.starts_with('-');
        if matches!(operator.text.as_str(), "-v" | "-R") || (named && evaluates) {
            if evaluates {
                given.doubts.push("a test that evaluates".to_owned());
            }
        } else if evaluates && operator.unknown.begins {
            uses(&mut given, operator, Value::Plain, "a test");
        }
    }
    given
}

/// `printf -v NAME` evaluates an index in the name; options end at the format.
fn before_the_format(args: &[Word]) -> Given {
    let mut given = Given::default();
    for word in args {
        let may_be_option = word.unknown.begins || word.text.starts_with('-');
        if !may_be_option || word.text == "--" {
            break;
        }
        if word.text.starts_with("-v") || (!word.is_sure() && word.text.starts_with('-')) {
            given.doubts.push("'printf' sets a variable".to_owned());
        }
        let what = "the options of 'printf'";
        uses(&mut given, word, Value::Plain, what);
    }
    given
}

/// Words that may be options, but for those behind an option that takes a value.
fn options(args: &[Word], evil: &[&str], valued: &[&str], most: Value) -> Given {
    let mut given = Given::default();
    let mut is_value = false;
    for word in args {
        if word.is_sure() && evil.iter().any(|it| crate::flags::is_flag(&word.text, it)) {
            given.doubts.push(format!("'{}'", word.text));
        }
        let hidden = !word.is_sure() && (word.unknown.splits || !is_value);
        if hidden && word.text.starts_with('-') {
            // What stands before it may be empty.
            given.doubts.push(format!("'{}'", word.text));
        } else if hidden && (word.unknown.begins || word.unknown.splits) {
            uses(&mut given, word, most, "options");
        }
        is_value = word.is_sure() && valued.contains(&word.text.as_str());
    }
    given
}
