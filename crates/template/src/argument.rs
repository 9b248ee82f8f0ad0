//! One argument of a template: text with placeholders.

use std::collections::BTreeMap;

use ostler_model::ByteString;

/// The longest name of a parameter, in bytes.
pub(crate) const NAME_BYTES: usize = 64;

/// One argument: text in which `{name}` stands for the value of a parameter, `{{` and `}}` for a
/// brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentTemplate {
    text: String,
    parts: Vec<ArgumentPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentPart {
    Text(String),
    Parameter(String),
}

impl ArgumentTemplate {
    /// Parses an argument.
    ///
    /// # Errors
    /// What is wrong with a brace, or with the name in a placeholder.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("contains a NUL byte".to_owned());
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let tail = &rest[at..];
            if let Some(after) = tail.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = tail.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(after) = tail.strip_prefix('{') {
                let (name, after) = after
                    .split_once('}')
                    .ok_or("has a '{' that is not closed; write {{ for a brace")?;
                check_name(name)?;
                if !literal.is_empty() {
                    parts.push(ArgumentPart::Text(std::mem::take(&mut literal)));
                }
                parts.push(ArgumentPart::Parameter(name.to_owned()));
                rest = after;
            } else {
                return Err("has a '}' that closes nothing; write }} for a brace".to_owned());
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(ArgumentPart::Text(literal));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The argument as it is written, with its placeholders.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the parameters in it, in their order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ArgumentPart::Parameter(name) => Some(name.as_str()),
            ArgumentPart::Text(_) => None,
        })
    }

    /// The argument with these values; none where a parameter has no value.
    pub(crate) fn fill(&self, values: &BTreeMap<String, ByteString>) -> Option<ByteString> {
        let mut argument = Vec::new();
        for part in &self.parts {
            argument.extend_from_slice(match part {
                ArgumentPart::Text(text) => text.as_bytes(),
                ArgumentPart::Parameter(name) => values.get(name)?.as_bytes(),
            });
        }
        Some(ByteString::from(argument))
    }
}

/// Checks the name of a parameter.
///
/// # Errors
/// Which names are allowed.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && name.chars().all(is_word) && name.len() <= NAME_BYTES {
        return Ok(());
    }
    let name = ostler_model::visible(name);
    Err(format!(
        "names a parameter '{name}'; allowed: letters, digits and '_', not beginning with a digit, \
         at most {NAME_BYTES}; write {{{{ for a brace"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str, value: &str) -> String {
        let values = BTreeMap::from([("a".to_owned(), ByteString::from(value))]);
        let argument = ArgumentTemplate::parse(text).unwrap();
        argument.fill(&values).unwrap().to_string()
    }

    #[test]
    fn placeholders_are_replaced_and_doubled_braces_are_braces() {
        assert_eq!(fill("--name={a}!", "x y"), "--name=x y!");
        assert_eq!(fill("{a}{a}", "{a}"), "{a}{a}");
        assert_eq!(fill(r#"{{"k": "{a}"}}"#, "v"), r#"{"k": "v"}"#);
        assert_eq!(fill("{{a}}", "v"), "{a}");
        assert_eq!(fill("", "v"), "");
        assert_eq!(fill("{a}", ""), "");
    }

    #[test]
    fn braces_that_are_no_placeholder_are_refused() {
        for (text, reason) in [
            ("{a", "not closed"),
            ("a}", "closes nothing"),
            ("{}", "names a parameter ''"),
            ("{a b}", "'a b'"),
            ("{1}", "'1'"),
            ("{a}}", "closes nothing"),
            ("\0", "NUL"),
        ] {
            let error = ArgumentTemplate::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_parameter_without_a_value_leaves_no_argument() {
        let argument = ArgumentTemplate::parse("x{b}").unwrap();
        assert_eq!(argument.fill(&BTreeMap::new()), None);
    }
}
