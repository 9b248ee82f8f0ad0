//! Secret bindings: `[secrets.NAME]` with `principals` and `projects`.

use std::collections::BTreeMap;

use ostler_engine::{SecretBinding, SecretHolder, SecretHolders};
use ostler_model::{ByteString, ErrorCode, Principal};

use super::load::SettingSource;
use super::value::{RawValue, SettingValue, ValueKind, list};
use crate::error::CommandError;

/// The table of bindings, in addition to the keys of `secrets` itself.
const TABLE: &str = "secrets.";
/// The name of the user of the unix socket.
const LOCAL: &str = "local";
/// Prefixes of the other principals: Unix users, and names of `ostler token new --principal`.
const KINDS: [&str; 2] = ["uid:", "token:"];

/// The bindings by the name of the secret.
pub(crate) type SecretBindings = BTreeMap<String, SecretBinding>;

/// The field that an entry sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BindingPart {
    Principals,
    Projects,
}

impl BindingPart {
    const fn allowed(self) -> &'static str {
        match self {
            Self::Principals => "a list of local, uid:NUMBER and token:NAME",
            Self::Projects => "a list of absolute paths",
        }
    }
}

/// Applies an entry if it belongs to a binding; returns whether it does.
///
/// # Errors
/// When it does, and its value is invalid.
pub(super) fn apply(
    bindings: &mut SecretBindings,
    name: &str,
    raw: &RawValue,
    source: &SettingSource,
) -> Result<bool, CommandError> {
    let Some((secret, part)) = parse_key(name) else {
        return Ok(false);
    };
    let invalid = || {
        let message = format!("{name} = {raw} ({source}) is not allowed");
        let error = CommandError::new(ErrorCode::Environment, message);
        error.with_hint(format!("allowed: {}", part.allowed()))
    };
    let binding = bindings.entry(secret.to_owned()).or_default();
    match part {
        BindingPart::Principals => {
            let words = list(raw, |word| parse_holder(word).is_some()).ok_or_else(invalid)?;
            let holders = words.iter().filter_map(|word| parse_holder(word));
            binding.holders = SecretHolders::Listed(holders.collect());
        }
        BindingPart::Projects => match ValueKind::Paths.parse(raw) {
            Some(SettingValue::List(paths)) => {
                binding.projects = paths.into_iter().map(ByteString::from).collect();
            }
            Some(_) | None => return Err(invalid()),
        },
    }
    Ok(true)
}

/// A binding, as text.
pub(crate) fn describe(binding: &SecretBinding) -> String {
    let holders: Vec<&str> = match &binding.holders {
        SecretHolders::LocalUser => vec![LOCAL],
        SecretHolders::Listed(listed) => listed.iter().map(holder_name).collect(),
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

fn holder_name(holder: &SecretHolder) -> &str {
    match holder {
        SecretHolder::LocalUser => LOCAL,
        SecretHolder::Principal(principal) => &principal.0,
    }
}

fn parse_key(name: &str) -> Option<(&str, BindingPart)> {
    let (secret, part) = name.strip_prefix(TABLE)?.split_once('.')?;
    let part = match part {
        "principals" => BindingPart::Principals,
        "projects" => BindingPart::Projects,
        _ => return None,
    };
    is_secret_name(secret).then_some((secret, part))
}

/// Whether a text is a valid name of a secret.
fn is_secret_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = text.bytes().next().is_some_and(|it| !it.is_ascii_digit());
    begins && text.bytes().all(is_letter)
}

fn parse_holder(word: &str) -> Option<SecretHolder> {
    if word == LOCAL {
        return Some(SecretHolder::LocalUser);
    }
    let named = |kind: &&str| {
        word.strip_prefix(*kind)
            .is_some_and(|name| !name.is_empty())
    };
    let is_principal = KINDS.iter().any(named);
    is_principal.then(|| SecretHolder::Principal(Principal(word.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply_setting(name: &str, raw: &RawValue) -> (Result<bool, String>, SecretBindings) {
        let mut bindings = SecretBindings::new();
        let source = SettingSource::Flag("--set");
        let applied = apply(&mut bindings, name, raw, &source);
        (applied.map_err(|error| error.to_string()), bindings)
    }

    #[test]
    fn principals_are_local_or_of_a_known_kind() {
        let raw = RawValue::List(vec!["local".to_owned(), "token:ann".to_owned()]);
        let (done, bindings) = apply_setting("secrets.TOKEN.principals", &raw);
        assert_eq!(done, Ok(true));
        let listed = SecretHolders::Listed(vec![
            SecretHolder::LocalUser,
            SecretHolder::Principal(Principal("token:ann".to_owned())),
        ]);
        assert_eq!(bindings["TOKEN"].holders, listed);
        assert_eq!(describe(&bindings["TOKEN"]), "for local, token:ann");
        let (done, _) = apply_setting(
            "secrets.TOKEN.principals",
            &RawValue::Text("ann".to_owned()),
        );
        assert!(done.is_err_and(|refusal| refusal.contains("token:NAME")));
    }

    #[test]
    fn projects_are_absolute_and_other_keys_are_none_of_these() {
        let (done, bindings) =
            apply_setting("secrets.A.projects", &RawValue::Text("/srv/app".to_owned()));
        assert_eq!(done, Ok(true));
        assert_eq!(bindings["A"].projects, [ByteString::from("/srv/app")]);
        assert_eq!(bindings["A"].holders, SecretHolders::LocalUser);
        assert_eq!(describe(&bindings["A"]), "for local, in /srv/app");
        assert!(
            apply_setting("secrets.A.projects", &RawValue::Text("app".to_owned()))
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
                apply_setting(other, &RawValue::Text(String::new())).0,
                Ok(false),
                "{other}"
            );
        }
    }
}
