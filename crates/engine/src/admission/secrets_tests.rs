use std::sync::Arc;

use ostler_model::{ByteString, Command, Owner, Principal, RequestChannel};
use proptest::prelude::*;

use super::environment;
use super::secrets::{is_secret_variable, resolve};
use crate::request::StartRequest;
use crate::secret_texts::{LiteralEscaping, ResolvedSecret, SecretTexts};
use crate::settings::{SecretSource, Settings};

#[derive(Debug)]
struct Store;

impl SecretSource for Store {
    fn value(&self, name: &str) -> Option<ByteString> {
        match name {
            "STORED" => Some(ByteString::from("from the store")),
            "SHORT" => Some(ByteString::from("abc")),
            _ => None,
        }
    }
}

fn settings() -> Settings {
    let mut settings = Settings::new("/nowhere");
    settings.secrets.prefixes = vec!["OSTLER_SECRET_".to_owned()];
    settings.secrets.source = Some(Arc::new(Store));
    settings.base_env = vec![("OSTLER_SECRET_DAEMON".into(), "of the daemon".into())];
    settings
}

fn asking(names: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(["true"], "/");
    request.base_env = vec![
        ("OSTLER_SECRET_TOKEN".into(), "hunter2hunter2".into()),
        ("PATH".into(), "/usr/bin".into()),
    ];
    request.options.secrets = names.iter().map(|it| (*it).to_owned()).collect();
    request
}

fn owner() -> Owner {
    Owner {
        principal: Principal::unix(7),
        project: None,
        session: None,
        task: None,
        channel: RequestChannel::Local,
    }
}

fn secret(name: &str, value: &str) -> ResolvedSecret {
    ResolvedSecret {
        name: name.to_owned(),
        value: ByteString::from(value),
    }
}

#[test]
fn the_proxy_the_daemon_and_the_store_provide_them() {
    let found = resolve(
        &settings(),
        &owner(),
        &asking(&["TOKEN", "DAEMON", "STORED"]),
    )
    .expect("found");
    let wanted = [
        secret("TOKEN", "hunter2hunter2"),
        secret("DAEMON", "of the daemon"),
        secret("STORED", "from the store"),
    ];
    assert_eq!(found, wanted);
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn one_that_cannot_be_kept_is_refused_by_name() {
    for (name, why) in [
        ("NONE", "nobody provides it"),
        ("SHORT", "shorter than 6 bytes"),
        ("A-B", "letters, digits"),
        ("", "letters, digits"),
        ("1A", "letters, digits"),
    ] {
        let error = resolve(&settings(), &owner(), &asking(&[name])).expect_err("refused");
        assert!(error.to_string().contains(why), "{name}: {error}");
    }
    let names: Vec<String> = (0..65).map(|n| format!("N{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(resolve(&settings(), &owner(), &asking(&names)).is_err());
}

#[test]
fn a_refused_secret_gets_the_same_error_whether_or_not_it_exists() {
    let network = Owner {
        channel: RequestChannel::Network,
        ..owner()
    };
    let actual = |names: &[&str]| {
        let refused = resolve(&settings(), &network, &asking(names)).expect_err("refused");
        assert_eq!(refused.code(), ostler_model::ErrorCode::Permission);
        (
            refused.to_string().replace(names[0], "N"),
            refused.hint().map(|it| it.replace(names[0], "N")),
        )
    };
    assert_eq!(actual(&["TOKEN"]), actual(&["NOWHERE"]));
    assert_eq!(
        actual(&["STORED", "NOWHERE"]),
        actual(&["NOWHERE", "STORED"])
    );
}

#[test]
fn variables_that_hold_them_are_never_passed_on() {
    let request = asking(&[]);
    let env = environment::build(&settings(), &request, true);
    assert!(
        env.iter()
            .all(|(name, _)| !is_secret_variable(&settings(), name.as_bytes()))
    );
    assert!(env.iter().any(|(name, _)| name.as_bytes() == b"PATH"));
}

proptest! {
    #[test]
    fn what_is_concealed_holds_no_value_and_comes_back(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "S3CR3T-VALUE", "S3CR3T-VALUE-LONGER", "[secret ", "[secret KEY]", "[secret ]", "]", "[",
            "secret", "KEY", "[secret", " ", "line-of-it", "x",
        ]), 0..12),
    ) {
        let secrets = [
            secret("KEY", "S3CR3T-VALUE"),
            secret("OTHER", "S3CR3T-VALUE-LONGER"),
            secret("WORD", "secret"),
            secret("LINES", "line-of-it\nVALUE-line\n"),
        ];
        let texts = SecretTexts::new(&secrets);
        let text = ByteString::from(pieces.concat());
        let concealed = texts.conceal(&text);
        prop_assert!(!concealed.to_string_lossy().contains("VALUE"), "{concealed}");
        prop_assert!(!concealed.to_string_lossy().contains("LONGER"), "{concealed}");
        prop_assert_eq!(texts.reveal(&concealed, LiteralEscaping::Escaped), text.clone());
        let command = Command::Argv { program: text.clone(), args: vec![text] };
        let shown = command.map_words(|it| texts.redact(it)).display();
        prop_assert!(!shown.contains("VALUE"), "{}", shown);
    }
}

#[test]
fn what_an_earlier_version_stored_comes_back() {
    let texts = SecretTexts::new(&[secret("KEY", "S3CR3T-VALUE")]);
    for (stored, text) in [
        ("a [secret KEY] b", "a S3CR3T-VALUE b"),
        (
            "[secret ] and [secret OTHER]",
            "[secret ] and [secret OTHER]",
        ),
    ] {
        let revealed = texts.reveal(&ByteString::from(stored), LiteralEscaping::None);
        assert_eq!(revealed, ByteString::from(text));
    }
    let none = SecretTexts::new(&[]);
    let literal = ByteString::from("[secret KEY]");
    assert_eq!(none.conceal(&literal), literal);
    assert_eq!(none.reveal(&literal, LiteralEscaping::None), literal);
}
