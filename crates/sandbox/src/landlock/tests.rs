//! Rules are right at every version, and this kernel accepts them.

use std::path::Path;

use ostler_model::sandbox_spec::{HostPattern, HostRule, NetworkAccess, SandboxSpec};
use ostler_model::{ByteString, Capability};
use proptest::prelude::*;

use super::rights::{self, ALL, IOCTL_DEV, READ, READ_DIR, REFER, TRUNCATE, USE};
use super::rules::LandlockRuleset;

fn confinement() -> SandboxSpec {
    SandboxSpec {
        workspace: Some(ByteString::from("/srv/it".to_owned())),
        home: Some(ByteString::from("/home/u".to_owned())),
        read: vec![ByteString::from("/srv/tools".to_owned())],
        write: vec![ByteString::from("/srv/cache".to_owned())],
        ..SandboxSpec::default()
    }
}

#[test]
fn everything_has_its_rights() {
    let rules = LandlockRuleset::new(&confinement(), 7);
    for (path, allowed) in [
        ("/", READ_DIR),
        ("/root/.ssh/id", READ_DIR),
        ("/usr/bin/true", READ),
        ("/srv/tools/x", READ),
        ("/srv/cache/x", ALL),
        ("/proc/self/comm", USE),
        ("/dev/null", USE),
        ("/dev/shm/x", ALL),
        ("/tmp/x", ALL),
        ("/srv/it/x", ALL),
        ("/srv/itself", READ_DIR),
        ("/home/u/.cache", ALL),
    ] {
        assert_eq!(rules.allowed(Path::new(path)), allowed, "{path}");
    }
}

#[test]
fn versions_know_what_the_manual_says() {
    assert_eq!(rights::fs(1) & (REFER | TRUNCATE | IOCTL_DEV), 0);
    assert_eq!(rights::fs(2) & (REFER | TRUNCATE | IOCTL_DEV), REFER);
    assert_eq!(rights::fs(3) & (TRUNCATE | IOCTL_DEV), TRUNCATE);
    assert_eq!(rights::fs(5), 0xFFFF);
    assert_eq!((rights::net(3), rights::net(4)), (0, 3));
    assert_eq!((rights::scopes(5), rights::scopes(6)), (0, 3));
    assert_eq!(rights::missing_rights(7), Vec::<&str>::new());
    assert_eq!(rights::missing_rights(5), ["signals and abstract sockets"]);
}

#[test]
fn ports_are_ruled_only_without_a_namespace() {
    let host = HostRule {
        host: HostPattern::Name("a.example".to_owned()),
        ports: Vec::new(),
    };
    let mut requested = SandboxSpec {
        network: NetworkAccess::AllowList { hosts: vec![host] },
        ..confinement()
    };
    assert_eq!(LandlockRuleset::new(&requested, 7).handled_net, 0);
    requested.without = vec![Capability::NetworkNamespace];
    let rules = LandlockRuleset::new(&requested, 7);
    assert_eq!(rules.handled_net, 3);
    let ports: Vec<u16> = rules.ports.iter().map(|rule| rule.port).collect();
    assert_eq!(ports, [80, 443]);
    assert!(LandlockRuleset::new(&requested, 3).ports.is_empty());
    requested.network = NetworkAccess::Full;
    assert_eq!(LandlockRuleset::new(&requested, 7).handled_net, 0);
}

proptest! {
    /// A newer version never allows what an older one restricted, and no rule gives a right that is
    /// not handled: the kernel would refuse the whole ruleset.
    #[test]
    fn newer_versions_only_restrict_more(abi in 0_u32..12, path in "(/[a-z]{1,6}){1,4}") {
        let (older, newer) = (LandlockRuleset::new(&confinement(), abi), LandlockRuleset::new(&confinement(), abi + 1));
        let path = Path::new(&path);
        let restricted = |rules: &LandlockRuleset| rules.handled_fs & !rules.allowed(path);
        prop_assert_eq!(restricted(&older) & !restricted(&newer), 0);
        for rule in &newer.paths {
            prop_assert_eq!(rule.allowed & !newer.handled_fs, 0);
        }
    }
}
