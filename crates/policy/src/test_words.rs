//! The words of the builtin `test`, which shells and wrappers both meet.

use crate::analysis::{ValueClass, VariableUse};
use crate::word::CommandWord;

/// What the words of a `test` evaluate.
#[derive(Debug, Default)]
pub(crate) struct TestWords {
    /// Parts that were not understood.
    pub(crate) unresolved: Vec<String>,
    /// Variables whose values decide what runs.
    pub(crate) uses: Vec<VariableUse>,
}

/// Checks `test`: `-v NAME` and `-R NAME` evaluate an index in the name. Which words are operators
/// follows from their positions, so an unknown word must neither split nor precede one that could
/// be evaluated.
pub(crate) fn analyze_test(words: &[CommandWord]) -> TestWords {
    let mut test = TestWords::default();
    for word in words.iter().filter(|word| word.unknown.may_split) {
        test.uses
            .extend(VariableUse::of_word(word, ValueClass::Plain, "a test"));
    }
    for pair in words.windows(2) {
        let [operator, operand] = pair else { continue };
        let evaluates = !operand.is_certain() || operand.text.contains('[');
        let named = !operator.is_certain() && operator.text.starts_with('-');
        if matches!(operator.text.as_str(), "-v" | "-R") || (named && evaluates) {
            if evaluates {
                test.unresolved.push("a test that evaluates".to_owned());
            }
        } else if evaluates && operator.unknown.at_start {
            test.uses
                .extend(VariableUse::of_word(operator, ValueClass::Plain, "a test"));
        }
    }
    test
}
