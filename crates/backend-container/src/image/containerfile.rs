//! Which images a Containerfile is built from: pure, as the classic builder reads the file.

use std::collections::{BTreeMap, BTreeSet};

/// The image without content, which no registry has.
const EMPTY_IMAGE: &str = "scratch";
/// How deep the text of a variable may contain others.
const NESTED_MAX: usize = 8;

/// The images that a build starts from or copies from, each once, in order of their names. Build
/// stages of the file itself are none. Variables have the values of `build_args`, else their
/// defaults.
pub(super) fn base_images(text: &str, build_args: &BTreeMap<String, String>) -> Vec<String> {
    let mut reader = Reader {
        build_args,
        defaults: BTreeMap::new(),
        stages: BTreeSet::new(),
        images: BTreeSet::new(),
        in_stage: false,
    };
    for line in instructions(text) {
        reader.read(&line);
    }
    reader.images.into_iter().collect()
}

struct Reader<'a> {
    build_args: &'a BTreeMap<String, String>,
    /// Of variables that are declared before the first stage: only these are in effect in `FROM`.
    defaults: BTreeMap<String, String>,
    stages: BTreeSet<String>,
    images: BTreeSet<String>,
    in_stage: bool,
}

impl Reader<'_> {
    fn read(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let Some(instruction) = words.next() else {
            return;
        };
        match instruction.to_ascii_uppercase().as_str() {
            "ARG" if !self.in_stage => words.for_each(|word| self.declare(word)),
            "FROM" => self.start_stage(words),
            "COPY" | "ADD" => {
                let sources = words.filter_map(|word| word.strip_prefix("--from="));
                sources.for_each(|source| self.add(source));
            }
            "RUN" => {
                let mounts = words.filter_map(|word| word.strip_prefix("--mount="));
                let fields = mounts.flat_map(|mount| mount.split(','));
                let sources = fields.filter_map(|field| field.strip_prefix("from="));
                sources.for_each(|source| self.add(source));
            }
            _ => {}
        }
    }

    fn declare(&mut self, word: &str) {
        let (name, default) = word.split_once('=').unwrap_or((word, ""));
        let default = default.trim_matches(['"', '\'']);
        self.defaults.insert(name.to_owned(), default.to_owned());
    }

    fn start_stage<'a>(&mut self, words: impl Iterator<Item = &'a str>) {
        self.in_stage = true;
        let mut words = words.filter(|word| !word.starts_with("--"));
        if let Some(image) = words.next() {
            self.add(image);
        }
        if let (Some(keyword), Some(stage)) = (words.next(), words.next())
            && keyword.eq_ignore_ascii_case("as")
        {
            self.stages.insert(stage.to_ascii_lowercase());
        }
    }

    /// Counts an image, unless it is a stage by name or number.
    fn add(&mut self, name: &str) {
        let name = self.expanded(name, NESTED_MAX);
        let is_stage = self.stages.contains(&name.to_ascii_lowercase());
        let is_number = name.bytes().all(|it| it.is_ascii_digit());
        if name != EMPTY_IMAGE && !is_stage && !is_number {
            self.images.insert(name);
        }
    }

    /// With `$name`, `${name}`, `${name:-default}` and `${name:+other}` replaced.
    fn expanded(&self, text: &str, depth: usize) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            result.push_str(before);
            let (variable, remaining) = Variable::parse(after);
            rest = remaining;
            if depth > 0 {
                result.push_str(&self.value(variable, depth - 1));
            }
        }
        result + rest
    }

    fn value(&self, variable: Variable<'_>, depth: usize) -> String {
        let given = self.build_args.get(variable.name);
        let default = self.defaults.get(variable.name);
        // Build arguments are in effect only for what is declared.
        let value = default.map(|default| given.unwrap_or(default));
        let value = value.filter(|it| !it.is_empty());
        match (value, variable.alternative) {
            (Some(_), Alternative::IfSet(text)) | (None, Alternative::IfUnset(text)) => {
                self.expanded(text, depth)
            }
            (Some(value), Alternative::None | Alternative::IfUnset(_)) => {
                self.expanded(value, depth)
            }
            (None, Alternative::None | Alternative::IfSet(_)) => String::new(),
        }
    }
}

/// A variable in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variable<'a> {
    name: &'a str,
    alternative: Alternative<'a>,
}

/// What may take a variable's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alternative<'a> {
    None,
    /// `:-`
    IfUnset(&'a str),
    /// `:+`
    IfSet(&'a str),
}

impl<'a> Variable<'a> {
    /// The variable that a text after `$` begins with, and the rest.
    fn parse(text: &'a str) -> (Self, &'a str) {
        if let Some(inner) = text.strip_prefix('{')
            && let Some((inner, rest)) = inner.split_once('}')
        {
            let (name, alternative) = match (inner.split_once(":-"), inner.split_once(":+")) {
                (Some((name, text)), _) => (name, Alternative::IfUnset(text)),
                (None, Some((name, text))) => (name, Alternative::IfSet(text)),
                (None, None) => (inner, Alternative::None),
            };
            return (Self { name, alternative }, rest);
        }
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let alternative = Alternative::None;
        (Self { name, alternative }, rest)
    }
}

/// The instructions, continued lines joined, without comments.
fn instructions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut instruction = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(part) = line.strip_suffix('\\') {
            instruction.push_str(part);
            instruction.push(' ');
        } else {
            instruction.push_str(line);
            found.push(std::mem::take(&mut instruction));
        }
    }
    if !instruction.is_empty() {
        found.push(instruction);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, build_args: &[(&str, &str)], expected: &[&str]) {
        let pairs = build_args.iter();
        let build_args = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        assert_eq!(base_images(text, &build_args.collect()), expected, "{text}");
    }

    #[test]
    fn images_are_found_and_stages_are_not() {
        check("FROM a:1\nRUN true", &[], &["a:1"]);
        check(
            "from --platform=x a AS b\nFROM b\nFROM scratch",
            &[],
            &["a"],
        );
        check("# FROM x\nFROM \\\n  # why\n  a", &[], &["a"]);
        let copies = "FROM a AS b\nFROM c\nCOPY --from=b /x /\nCOPY --from=0 /y /";
        check(copies, &[], &["a", "c"]);
        let tools = "FROM a\nCOPY --chown=1:1 --from=tools:2 /x /";
        check(tools, &[], &["a", "tools:2"]);
        let mount = "FROM a\nRUN --mount=type=bind,from=b,target=/b true";
        check(mount, &[], &["a", "b"]);
        check("", &[], &[]);
    }

    #[test]
    fn variables_are_replaced_where_they_are_declared() {
        let text = "ARG BASE=a\nARG TAG=\"1\"\nFROM ${BASE}:$TAG";
        check(text, &[], &["a:1"]);
        check(text, &[("TAG", "2"), ("OTHER", "x")], &["a:2"]);
        check("FROM a${OTHER}", &[("OTHER", "x")], &["a"]);
        check("FROM ${BASE:-debian}", &[], &["debian"]);
        check("ARG X=1\nFROM a${X:+-slim}", &[], &["a-slim"]);
        check("ARG A=$A\nFROM x$A", &[], &["x"]);
    }
}
