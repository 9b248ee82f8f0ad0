use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<HostRule, &'static str> {
    text.parse().map_err(|error: HostRuleError| error.problem)
}

fn shown(text: &str) -> String {
    parse(text).expect(text).to_string()
}

#[test]
fn every_form_is_read_and_written_in_its_canonical_form() {
    for (given, canonical) in [
        ("example.org", "example.org"),
        ("EXAMPLE.Org.", "example.org"),
        ("*.Example.org", "*.example.org"),
        ("example.org:8443", "example.org:8443"),
        ("example.org:80,8443,80", "example.org:80,8443"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("_srv.example.org", "_srv.example.org"),
        ("db", "db"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/32:22", "10.1.2.3:22"),
        ("10.1.2.0/24:5432", "10.1.2.0/24:5432"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("2001:DB8::/32", "[2001:db8::]/32"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("[2001:db8::]/32:443", "[2001:db8::]/32:443"),
    ] {
        assert_eq!(shown(given), canonical, "{given}");
        assert_eq!(parse(canonical), parse(given), "{given}");
    }
}

#[test]
fn without_ports_a_rule_means_the_webs() {
    assert_eq!(parse("example.org").expect("a name").ports(), [80, 443]);
    assert_eq!(parse("example.org:22").expect("a name").ports(), [22]);
}

#[test]
fn what_is_no_host_says_why() {
    let long_label = "a".repeat(64);
    let long_name = ["a".repeat(63).as_str(); 4].join(".");
    for (given, problem) in [
        ("", "it is empty"),
        ("https://example.org", "without scheme"),
        ("example.org/path", "without scheme"),
        ("user@example.org", "without scheme"),
        ("exam ple.example", "spaces"),
        ("example.org\n", "spaces"),
        ("*", "'full'"),
        ("*.", "a label is empty"),
        ("a.*.org", "a star"),
        ("*example.org", "a star"),
        ("bücher.example", "xn--"),
        ("ехample.test", "xn--"),
        ("a..b", "a label is empty"),
        (".example.org", "a label is empty"),
        ("example.org..", "a label is empty"),
        ("-a.example", "hyphen"),
        ("a-.example", "hyphen"),
        ("a!b.example", "letters, digits"),
        (&long_label, "63"),
        (&long_name, "253"),
        ("127.1", "neither a name nor"),
        ("2130706433", "neither a name nor"),
        ("0x7f000001", "neither a name nor"),
        ("1.2.3.4.5", "neither a name nor"),
        ("010.1.2.3", "neither a name nor"),
        ("10.1.2.3/24", "bits beyond"),
        ("10.0.0.0/33", "prefix length"),
        ("10.0.0.0/+8", "prefix length"),
        ("10.0.0.0/", "prefix length"),
        ("::ffff:10.0.0.1", "IPv4 address itself"),
        ("[::ffff:a00:1]:443", "IPv4 address itself"),
        ("[2001:db8::1", "not closed"),
        ("[example.org]", "brackets"),
        ("fe80::1%eth0", "letters, digits"),
        ("example.org:0", "1 to 65535"),
        ("example.org:65536", "1 to 65535"),
        ("example.org:+80", "1 to 65535"),
        ("example.org:", "1 to 65535"),
        ("example.org:http", "1 to 65535"),
        ("localhost", "always reachable"),
        ("*.localhost", "always reachable"),
    ] {
        let found = parse(given).expect_err(given);
        assert!(found.contains(problem), "{given}: {found}");
    }
}

#[test]
fn below_means_names_below_and_not_itself() {
    let rule = parse("*.web.example").expect("a wildcard");
    for (name, meant) in [
        ("a.web.example", true),
        ("b.a.web.example", true),
        ("web.example", false),
        (".web.example", false),
        ("badweb.example", false),
        ("web.example.evil.test", false),
    ] {
        assert_eq!(rule.host.matches_name(name), meant, "{name}");
    }
}

#[test]
fn addresses_are_distinguished_by_their_prefix_and_family() {
    let rule = parse("10.1.2.0/24").expect("a network");
    let all = parse("0.0.0.0/0").expect("a network");
    for (address, meant) in [("10.1.2.255", true), ("10.1.3.0", false), ("::1", false)] {
        let address = address.parse().expect("an address");
        assert_eq!(rule.host.matches_address(address), meant, "{address}");
        assert_eq!(all.host.matches_address(address), address.is_ipv4());
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_survives_being_written(text in "\\PC{0,64}") {
        if let Ok(rule) = text.parse::<HostRule>() {
            prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
        }
    }

    #[test]
    fn hostlike_text_is_refused_or_survives(text in "[\\[\\]a-f0-9:./,*x-]{0,40}") {
        if let Ok(rule) = text.parse::<HostRule>() {
            prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
        }
    }
}
