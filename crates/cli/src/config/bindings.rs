//! To whom secrets are given: `[secrets.NAME]` with `principals` and `projects`.

use std::collections::BTreeMap;

use ostler_engine::{Binding, Holder, Holders};
use ostler_model::{ErrorCode, Principal, Text};

use super::load::Source;
use super::value::{Kind, Raw, Value, list};
use crate::error::CommandError;

/// The table that bindings stand in, beside the keys that have one name more only.
const TABLE: &str = "secrets.";
/// The user of the unix socket, whoever that is.
const LOCAL: &str = "local";
/// How the other principals begin: Unix users, and names given by `ostler token new --principal`.
const KINDS: [&str; 2] = ["uid:", "token:"];

/// What is set of bindings, by the secret's name.
pub(crate) type Bindings = BTreeMap<String, Binding>;

/// What one entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Principals,
    Projects,
}

impl Part {
    const fn allowed(self) -> &'static str {
        match self {
            Self::Principals => "a list of local, uid:NUMBER and token:NAME",
            Self::Projects => "a list of absolute paths",
        }
    }
}

/// Takes an entry where it is one of a binding; whether it was.
///
/// # Errors
/// When it is one, and its value cannot be.
pub(super) fn take(
    bindings: &mut Bindings,
    name: &str,
    (raw, source): (&Raw, &Source),
) -> Result<bool, CommandError> {
    let Some((secret, part)) = parse(name) else {
        return Ok(false);
    };
    let refused = || {
        let message = format!("{name} = {raw} ({source}) is not allowed");
        let error = CommandError::new(ErrorCode::Environment, message);
        error.with_hint(format!("allowed: {}", part.allowed()))
    };
    let binding = bindings.entry(secret.to_owned()).or_default();
    match part {
        Part::Principals => {
            let words = list(raw, |word| holder(word).is_some()).ok_or_else(refused)?;
            let holders = words.iter().filter_map(|word| holder(word));
            binding.holders = Holders::Listed(holders.collect());
        }
        Part::Projects => match Kind::Paths.accept(raw) {
            Some(Value::List(paths)) => {
                binding.projects = paths.into_iter().map(Text::from).collect();
            }
            Some(_) | None => return Err(refused()),
        },
    }
    Ok(true)
}

/// A binding for people.
pub(crate) fn describe(binding: &Binding) -> String {
    let holders: Vec<&str> = match &binding.holders {
        Holders::LocalUser => vec![LOCAL],
        Holders::Listed(listed) => listed.iter().map(word).collect(),
    };
    let holders = match holders.as_slice() {
        [] => "nobody".to_owned(),
        some => some.join(", "),
    };
    let projects = binding.projects.iter().map(ToString::to_string);
    let projects: Vec<String> = projects.collect();
    if projects.is_empty() {
        return format!("for {holders}");
    }
    format!("for {holders}, in {}", projects.join(", "))
}

fn word(holder: &Holder) -> &str {
    match holder {
        Holder::LocalUser => LOCAL,
        Holder::Principal(principal) => &principal.0,
    }
}

fn parse(name: &str) -> Option<(&str, Part)> {
    let (secret, part) = name.strip_prefix(TABLE)?.split_once('.')?;
    let part = match part {
        "principals" => Part::Principals,
        "projects" => Part::Projects,
        _ => return None,
    };
    is_name(secret).then_some((secret, part))
}

/// Whether a secret can have this name.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = text.bytes().next().is_some_and(|it| !it.is_ascii_digit());
    begins && text.bytes().all(is_letter)
}

fn holder(word: &str) -> Option<Holder> {
    if word == LOCAL {
        return Some(Holder::LocalUser);
    }
    let named = |kind: &&str| {
        word.strip_prefix(*kind)
            .is_some_and(|name| !name.is_empty())
    };
    let is_principal = KINDS.iter().any(named);
    is_principal.then(|| Holder::Principal(Principal(word.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(name: &str, raw: &Raw) -> (Result<bool, String>, Bindings) {
        let mut bindings = Bindings::new();
        let source = Source::Flag("--set");
        let taken = take(&mut bindings, name, (raw, &source));
        (taken.map_err(|error| error.to_string()), bindings)
    }

    #[test]
    fn principals_are_local_or_of_a_known_kind() {
        let raw = Raw::List(vec!["local".to_owned(), "token:ann".to_owned()]);
        let (done, bindings) = taken("secrets.TOKEN.principals", &raw);
        assert_eq!(done, Ok(true));
        let listed = Holders::Listed(vec![
            Holder::LocalUser,
            Holder::Principal(Principal("token:ann".to_owned())),
        ]);
        assert_eq!(bindings["TOKEN"].holders, listed);
        assert_eq!(describe(&bindings["TOKEN"]), "for local, token:ann");
        let (done, _) = taken("secrets.TOKEN.principals", &Raw::Text("ann".to_owned()));
        assert!(done.is_err_and(|told| told.contains("token:NAME")));
    }

    #[test]
    fn projects_are_absolute_and_other_keys_are_none_of_these() {
        let (done, bindings) = taken("secrets.A.projects", &Raw::Text("/srv/app".to_owned()));
        assert_eq!(done, Ok(true));
        assert_eq!(bindings["A"].projects, [Text::from("/srv/app")]);
        assert_eq!(bindings["A"].holders, Holders::LocalUser);
        assert_eq!(describe(&bindings["A"]), "for local, in /srv/app");
        assert!(
            taken("secrets.A.projects", &Raw::Text("app".to_owned()))
                .0
                .is_err()
        );
        for other in [
            "secrets.prefix",
            "secrets.A.users",
            "secrets.1A.projects",
            "mcp.tools",
        ] {
            assert_eq!(
                taken(other, &Raw::Text(String::new())).0,
                Ok(false),
                "{other}"
            );
        }
    }
}
