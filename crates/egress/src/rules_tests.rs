use proptest::prelude::*;

use super::*;

fn rules(texts: &[&str]) -> EgressRules {
    let parsed = texts.iter().map(|text| text.parse().expect("a rule"));
    EgressRules::new(parsed.collect())
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn special_ranges_are_forbidden_and_public_ones_are_not() {
    let none = rules(&["web.test"]);
    for forbidden in [
        "0.0.0.0",
        "0.1.2.3",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(
            none.denying_range(ip(forbidden), 443).is_some(),
            "{forbidden}"
        );
    }
    for public in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "64:ff9b::1.1.1.1",
    ] {
        assert_eq!(none.denying_range(ip(public), 443), None, "{public}");
    }
}

#[test]
fn only_a_rule_within_a_range_opens_it_and_only_at_its_port() {
    let narrow = rules(&["10.1.0.0/16:5432"]);
    assert_eq!(narrow.denying_range(ip("10.1.2.3"), 5432), None);
    assert_eq!(narrow.denying_range(ip("64:ff9b::10.1.2.3"), 5432), None);
    assert!(narrow.denying_range(ip("10.1.2.3"), 443).is_some());
    assert!(narrow.denying_range(ip("10.2.0.1"), 5432).is_some());
    let wide = rules(&["0.0.0.0/0", "8.0.0.0/5", "[::]/0"]);
    for address in ["10.1.2.3", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"] {
        assert!(wide.denying_range(ip(address), 443).is_some(), "{address}");
    }
    let metadata = rules(&["169.254.0.0/16"]);
    assert!(metadata.denying_range(ip("169.254.169.254"), 80).is_some());
    assert_eq!(
        rules(&["169.254.169.254"]).denying_range(ip("169.254.169.254"), 80),
        None
    );
}

#[test]
fn names_and_ports_go_together() {
    let both = rules(&["a.test:1", "*.a.test:2", "b.test"]);
    assert!(both.allows_port("a.test", 1) && !both.allows_port("a.test", 2));
    assert!(both.allows_port("x.a.test", 2) && !both.allows_port("x.a.test", 1));
    assert!(both.allows_port("b.test", 443) && !both.allows_port("b.test", 8443));
    assert_eq!(
        both.ports().into_iter().collect::<Vec<_>>(),
        [1, 2, 80, 443]
    );
}

#[test]
fn loopback_is_never_caught() {
    let local = rules(&["127.0.0.1:5432", "[::1]:5432", "10.0.0.1"]);
    let nets: Vec<IpAddr> = local.routed_nets().iter().map(|net| net.address).collect();
    assert_eq!(nets, [ip("10.0.0.1")]);
    assert!(local.names_address(ip("127.0.0.1"), 5432));
}

proptest! {
    #[test]
    fn what_hides_an_address_of_ipv4_hides_nothing(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from_bits(bits);
        let rules = rules(&["web.test"]);
        let plain = rules.denying_range(v4.into(), 443).is_some();
        prop_assert!(rules.denying_range(v4.to_ipv6_mapped().into(), 443).is_some());
        let [a, b, c, d] = v4.octets();
        let word = |high, low| u16::from_be_bytes([high, low]);
        let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, word(a, b), word(c, d));
        prop_assert_eq!(rules.denying_range(translated.into(), 443).is_some(), plain);
    }
}
