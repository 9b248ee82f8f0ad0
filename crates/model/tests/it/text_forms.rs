//! The text forms of hosts, networks and limits.

use ostler_model::quantity::{LIMIT_NAMES, parse_bytes};
use ostler_model::{Capability, Limits, NetworkAccess};
use proptest::prelude::*;

#[test]
fn networks_are_a_word_or_hosts() {
    let read = |text: &str| text.parse::<NetworkAccess>();
    assert_eq!(read("none"), Ok(NetworkAccess::None));
    assert_eq!(read("full"), Ok(NetworkAccess::Full));
    let list = read("example.org,*.example.net").unwrap();
    assert_eq!(list.to_string(), "example.org,*.example.net");
    assert_eq!(NetworkAccess::from_words([]), Ok(NetworkAccess::None));
    let ports = read("a.example:80,8443, b.example").unwrap();
    assert_eq!(
        ports,
        NetworkAccess::from_words(["a.example:80,8443", "b.example"]).unwrap()
    );
    assert_eq!(read(&ports.to_string()), Ok(ports));
    for bad in ["full,example.org", "none,none", "example.org,", "ful"] {
        // One word without a dot is a name of the local network, not a typo that could be
        // recognized.
        assert_eq!(read(bad).is_err(), bad != "ful", "{bad}");
    }
}

#[test]
fn restrictions_have_names() {
    for ability in Capability::ALL {
        assert_eq!(ability.as_str().parse(), Ok(ability));
    }
    let message = "moat".parse::<Capability>().unwrap_err().to_string();
    assert!(message.contains("landlock, seccomp"), "{message}");
    for word in message.split("allowed: ").nth(1).unwrap().split(", ") {
        assert!(word.parse::<Capability>().is_ok(), "{word}");
    }
}

#[test]
fn amounts_are_read_as_people_write_them() {
    for (given, expected) in [
        ("1", Some(1)),
        ("512K", Some(512 << 10)),
        ("512k", Some(512 << 10)),
        ("512M", Some(512 << 20)),
        ("512MB", Some(512 << 20)),
        ("512MiB", Some(512 << 20)),
        ("1.5G", Some(3 << 29)),
        ("2T", Some(2 << 40)),
        ("0", None),
        ("", None),
        ("M", None),
        ("-1", None),
        ("1e3", None),
        ("inf", None),
        ("1 M", None),
        ("1X", None),
        ("99999999999T", None),
    ] {
        assert_eq!(parse_bytes(given), expected, "{given}");
    }
    let mut limits = Limits::default();
    for (name, given) in LIMIT_NAMES
        .into_iter()
        .zip(["1G", "0.5", "64", "1M", "32", "4K"])
    {
        limits.set(name, given).unwrap();
    }
    assert_eq!(limits.cpu_millis, Some(500));
    assert_eq!((limits.pids, limits.open_files), (Some(64), Some(32)));
    for (name, given) in [
        ("cpus", "0"),
        ("cpus", "nan"),
        ("pids", "0"),
        ("pids", "5000000"),
    ] {
        let message = limits.set(name, given).unwrap_err().to_string();
        assert!(message.contains("allowed"), "{message}");
    }
    let message = limits.set("ram", "1G").unwrap_err().to_string();
    assert_eq!(
        message,
        "limit 'ram' is '1G'; allowed: memory, cpus, pids, disk, files, file_size"
    );
}

proptest! {
    #[test]
    fn reading_never_panics(text in "\\PC{0,40}") {
        if let Ok(network) = text.parse::<NetworkAccess>() {
            prop_assert_eq!(network.to_string().parse::<NetworkAccess>(), Ok(network));
        }
        let _any = parse_bytes(&text);
    }
}
