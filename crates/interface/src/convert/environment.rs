//! The environment of an execution, without its secrets.

use ostler_api::{EnvironmentBody, VariableBody};
use ostler_model::{ByteString, Environment};

/// Words in the name of a variable that make its value a secret.
const SECRET_WORDS: [&str; 11] = [
    "AUTH",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PWD",
    "SECRET",
    "TOKEN",
];
/// Variables that hold no secret although a word of their name is one.
const PUBLIC_NAMES: [&str; 2] = ["PWD", "OLDPWD"];

/// The variables of a request by name, secrets without their values.
pub fn environment_body(environment: &Environment) -> EnvironmentBody {
    let set = environment.set.iter().map(|(name, value)| VariableBody {
        name: name.clone(),
        value: (!is_secret(name)).then(|| public_value(value)),
    });
    let secrets = environment.secrets.iter().map(|name| VariableBody {
        name: ByteString::from(name.clone()),
        value: None,
    });
    let mut variables: Vec<VariableBody> = set.chain(secrets).collect();
    variables.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    EnvironmentBody {
        inherit: environment.inherit,
        variables,
    }
}

/// Whether a word of the name is one for secrets; words are separated by anything but letters.
fn is_secret(name: &ByteString) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    !PUBLIC_NAMES.contains(&name.as_str())
        && words.any(|word| {
            SECRET_WORDS.contains(&word)
                || SECRET_WORDS
                    .iter()
                    .any(|secret| secret.len() > 4 && word.ends_with(secret))
        })
}

/// A value without the password of a URL in it.
fn public_value(value: &ByteString) -> ByteString {
    let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
        return value.clone();
    };
    let Some(scheme_end) = text.find("://").map(|at| at + 3) else {
        return value.clone();
    };
    let authority_end = text[scheme_end..]
        .find(['/', '?', '#'])
        .map_or(text.len(), |at| scheme_end + at);
    let authority = &text[scheme_end..authority_end];
    let Some((user, host)) = authority.rsplit_once('@') else {
        return value.clone();
    };
    let Some((name, _password)) = user.split_once(':') else {
        return value.clone();
    };
    let (scheme, rest) = (&text[..scheme_end], &text[authority_end..]);
    ByteString::from(format!("{scheme}{name}:***@{host}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> ByteString {
        ByteString::from(value.to_owned())
    }

    #[test]
    fn names_of_secrets() {
        for secret in [
            "TOKEN",
            "GITHUB_TOKEN",
            "githubToken",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "API_KEY",
            "PGPASSWORD",
            "CLIENT-SECRET",
            "NPM_CONFIG__auth",
        ] {
            assert!(is_secret(&text(secret)), "{secret}");
        }
        for public in [
            "PATH",
            "PWD",
            "KEYBOARD",
            "MONKEY",
            "AUTHOR",
            "TOKENIZERS",
            "CARGO_TERM_COLOR",
        ] {
            assert!(!is_secret(&text(public)), "{public}");
        }
    }

    #[test]
    fn passwords_in_urls_are_left_out() {
        for (value, public) in [
            (
                "postgres://ann:s3:cret@db.test/x?y=@z",
                "postgres://ann:***@db.test/x?y=@z",
            ),
            ("https://example.org/a:b@c", "https://example.org/a:b@c"),
            ("redis://:secret@cache.test", "redis://:***@cache.test"),
            ("no url: a:b@c", "no url: a:b@c"),
        ] {
            assert_eq!(public_value(&text(value)), text(public), "{value}");
        }
    }

    #[test]
    fn variables_are_ordered_and_secrets_have_no_value() {
        let environment = Environment {
            inherit: true,
            set: vec![
                (text("B"), text("2")),
                (text("MY_TOKEN"), text("hidden")),
                (text("A"), text("1")),
            ],
            secrets: vec!["DEPLOY".to_owned()],
        };
        let body = environment_body(&environment);
        let shown: Vec<_> = body
            .variables
            .iter()
            .map(|it| (it.name.to_string_lossy(), it.value.is_some()))
            .collect();
        assert_eq!(
            shown,
            [
                ("A".into(), true),
                ("B".into(), true),
                ("DEPLOY".into(), false),
                ("MY_TOKEN".into(), false)
            ]
        );
    }
}
