use std::fs;
use std::path::Path;

use super::{GIT_FILES, STORES, find_stores, has_login, is_within};

/// A path that matches a pattern of the list.
fn sample(store: &str) -> String {
    store.replace('*', "-sample")
}

#[test]
fn every_store_and_what_lies_in_it_is_one() {
    for store in STORES {
        let path = sample(store);
        assert!(is_within(Path::new(&path)), "{store}");
        assert!(is_within(&Path::new(&path).join("deeper/file")), "{store}");
        let beside = format!("harmless-{}", path.trim_start_matches('.'));
        assert!(!is_within(Path::new(&beside)), "{store}");
    }
}

#[test]
fn every_store_is_found_where_it_is_there() {
    for store in STORES {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join(sample(store));
        let above = path.parent().expect("below the home");
        fs::create_dir_all(above).expect("made");
        fs::write(above.join("harmless-neighbour"), "").expect("written");
        assert_eq!(find_stores(home.path()), [] as [&Path; 0], "{store}");
        fs::write(&path, "secret").expect("written");
        assert!(find_stores(home.path()).contains(&path), "{store}");
        assert!(!find_stores(home.path()).contains(&above.join("harmless-neighbour")));
    }
}

#[test]
fn what_level_high_shows_of_a_home_is_no_store() {
    for shown in crate::settings::HOME_VISIBLE {
        assert!(!is_within(Path::new(shown)), "{shown}");
    }
}

#[test]
fn a_login_in_gits_configuration_is_seen() {
    for text in [
        "[http]\n\textraHeader = Authorization: Basic abc\n",
        "[github]\n\ttoken = abc\n",
        "[url \"https://me:key@example.org/\"]\n\tinsteadOf = https://example.org/\n",
        "[remote \"o\"]\n\turl = ssh://git@host/x https://\\\nkey@host\n",
        "[credential]\n\thelper = \"!f() { echo password=abc; }; f\"\n",
        "[http]\n\tcookieFile = ~/.cookies\n",
        "[sendemail]\n\tsmtpPass = abc\n",
    ] {
        assert!(has_login(text.as_bytes()), "{text}");
    }
    for text in [
        "[user]\n\tname = Ann\n\temail = ann@example.org\n",
        "[url \"ssh://git@example.org/\"]\n\tinsteadOf = https://example.org/\n",
        "[credential]\n\thelper = /usr/lib/git-core/git-credential-libsecret\n",
        "# token = none\n[core]\n\teditor = vi\n",
        "[url \"git@example.org:\"]\n\tinsteadOf = https://example.org/\n",
    ] {
        assert!(!has_login(text.as_bytes()), "{text}");
    }
}

#[test]
fn gits_files_are_found_with_a_login_and_not_without() {
    let home = tempfile::tempdir().expect("a directory");
    for file in GIT_FILES {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(&path, "[user]\n\tname = Ann\n").expect("written");
        assert!(!find_stores(home.path()).contains(&path));
        fs::write(&path, "[github]\n\ttoken = abc\n").expect("written");
        assert!(find_stores(home.path()).contains(&path));
    }
}
