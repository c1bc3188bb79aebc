use super::*;

fn private() -> Egress {
    Egress::default()
}

fn public(allow: &str) -> Egress {
    Egress::parse("public", allow).unwrap()
}

fn is_open(egress: &Egress, addr: &str) -> bool {
    egress.check(addr.parse().unwrap(), "host.example", 443).is_ok()
}

/// First and last address of each range, with its neighbours where those are open; then whether `private` and
/// `public` let it be dialled.
const TABLE: &[(&str, bool, bool)] = &[
    // Public addresses.
    ("1.1.1.1", true, true),
    ("8.8.8.8", true, true),
    ("93.184.216.34", true, true),
    ("2606:4700::1111", true, true),
    ("2a00:1450:4001::200e", true, true),
    ("2001:200::1", true, true),
    ("3ffe::1", true, true),
    // Unspecified, this network.
    ("0.0.0.0", false, false),
    ("0.0.0.1", true, false),
    ("0.255.255.255", true, false),
    ("::", false, false),
    // Private networks.
    ("9.255.255.255", true, true),
    ("10.0.0.0", true, false),
    ("10.255.255.255", true, false),
    ("11.0.0.0", true, true),
    ("172.15.255.255", true, true),
    ("172.16.0.0", true, false),
    ("172.31.255.255", true, false),
    ("172.32.0.0", true, true),
    ("192.167.255.255", true, true),
    ("192.168.0.0", true, false),
    ("192.168.255.255", true, false),
    ("192.169.0.0", true, true),
    ("fc00::", true, false),
    ("fd12:3456::1", true, false),
    ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    // Shared address space, loopback.
    ("100.63.255.255", true, true),
    ("100.64.0.0", true, false),
    ("100.127.255.255", true, false),
    ("100.128.0.0", true, true),
    ("126.255.255.255", true, true),
    ("127.0.0.0", true, false),
    ("127.0.0.1", true, false),
    ("127.255.255.255", true, false),
    ("128.0.0.0", true, true),
    ("::1", true, false),
    // Link-local.
    ("169.253.255.255", true, true),
    ("169.254.0.0", false, false),
    ("169.254.255.255", false, false),
    ("169.255.0.0", true, true),
    ("fe80::", false, false),
    ("febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
    // Cloud metadata.
    ("169.254.169.254", false, false),
    ("168.63.129.16", false, false),
    ("168.63.129.15", true, true),
    ("168.63.129.17", true, true),
    ("100.100.100.200", false, false),
    ("100.100.100.201", true, false),
    ("fd00:ec2::254", false, false),
    ("fd00:ec2::", false, false),
    ("fd00:ec2::23", false, false),
    ("fd00:ec2::253", false, false),
    ("fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
    ("fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    ("fd00:ec3::", true, false),
    ("192.0.0.192", false, false),
    ("fd20:ce::254", false, false),
    // Protocol assignments, documentation, relays, benchmarking.
    ("191.255.255.255", true, true),
    ("192.0.0.0", false, false),
    ("192.0.0.255", false, false),
    ("192.0.1.0", true, true),
    ("192.0.2.0", true, false),
    ("192.0.2.255", true, false),
    ("192.0.3.0", true, true),
    ("192.88.98.255", true, true),
    ("192.88.99.0", true, false),
    ("192.88.99.255", true, false),
    ("192.88.100.0", true, true),
    ("198.17.255.255", true, true),
    ("198.18.0.0", true, false),
    ("198.19.255.255", true, false),
    ("198.20.0.0", true, true),
    ("198.51.99.255", true, true),
    ("198.51.100.0", true, false),
    ("198.51.100.255", true, false),
    ("198.51.101.0", true, true),
    ("203.0.112.255", true, true),
    ("203.0.113.0", true, false),
    ("203.0.113.255", true, false),
    ("203.0.114.0", true, true),
    // Multicast, reserved, broadcast.
    ("223.255.255.255", true, true),
    ("224.0.0.0", false, false),
    ("239.255.255.255", false, false),
    ("240.0.0.0", true, false),
    ("255.255.255.254", true, false),
    ("255.255.255.255", false, false),
    ("ff00::", false, false),
    ("ff02::1", false, false),
    ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
    // The special ranges of IPv6.
    ("::2", true, false),
    ("::7f00:1", true, false),
    ("::1:0:0", true, false),
    ("64:ff9b::808:808", true, false),
    ("64:ff9b:1::", false, false),
    ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", false, false),
    ("100::", true, false),
    ("100::ffff:ffff:ffff:ffff", true, false),
    ("2001::", false, false),
    ("2001:1::", true, false),
    ("2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    ("2001:db8::", true, false),
    ("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    ("2001:db9::", true, true),
    ("2002::", false, false),
    ("2002:808:808::", true, false),
    ("2003::", true, true),
    ("3fff::", true, false),
    ("3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    ("3fff:1000::", true, true),
    ("5f00::", true, false),
    ("fec0::", true, false),
    ("feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
    // What is assigned to no network.
    ("1fff:ffff::1", true, false),
    ("4000::1", true, false),
    ("8000::1", true, false),
    // IPv4 in the clothes of IPv6.
    ("::ffff:8.8.8.8", true, true),
    ("::ffff:10.0.0.1", true, false),
    ("::ffff:127.0.0.1", true, false),
    ("::ffff:169.254.169.254", false, false),
    ("::ffff:0.0.0.0", false, false),
    ("::169.254.169.254", false, false),
    ("64:ff9b::169.254.169.254", false, false),
    ("64:ff9b::192.0.0.192", false, false),
    ("64:ff9b:1::169.254.169.254", false, false),
    ("64:ff9b:1:ffff:0:0:169.254.169.254", false, false),
    ("64:ff9b:1::8.8.8.8", true, false),
    ("64:ff9b:1::10.0.0.1", true, false),
    // Its prefix may have 48, 56 or 64 bits, and any end.
    ("64:ff9b:1:a9fe:a9:fe00::", false, false),
    ("64:ff9b:1:a9fe:a9:fe00::1", false, false),
    ("64:ff9b:1:a9:fe:a9fe::", false, false),
    ("64:ff9b:1:0:a9:fea9:fe00:0", false, false),
    ("64:ff9b:1:a00:0:100::", true, false),
    ("64:ff9b:1:a:0:1::", true, false),
    ("64:ff9b:1:0:a:0:100:0", true, false),
    ("::ffff:0:169.254.169.254", false, false),
    ("::ffff:0:10.0.0.1", true, false),
    ("2002:a9fe:a9fe::", false, false),
    ("2002:c000:c0::1", false, false),
    // Teredo: by its server, and by its client.
    ("2001:0:a9fe:a9fe:0:0:f7f7:f7f7", false, false),
    ("2001:0:808:808:0:0:5601:5601", false, false),
    ("2001:0:808:808:0:0:f7f7:f7f7", true, false),
    // ISATAP.
    ("2a00:1450:4001::5efe:169.254.169.254", false, false),
    ("2a00:1450:4001::200:5efe:169.254.169.254", false, false),
    ("2a00:1450:4001::5efe:8.8.8.8", true, true),
];

#[test]
fn each_range_is_open_or_closed_as_its_policy_says() {
    let (private, public) = (private(), public(""));
    for (addr, under_private, under_public) in TABLE {
        assert_eq!((is_open(&private, addr), is_open(&public, addr)), (*under_private, *under_public), "{addr}");
    }
}

#[test]
fn no_range_is_left_out_of_the_table() {
    for range in ALWAYS_CLOSED.iter().chain(CLOSED_TO_PUBLIC) {
        assert!(TABLE.iter().any(|(addr, _, _)| range.net.contains(&addr.parse::<IpAddr>().unwrap())), "{}", range.net);
    }
}

#[test]
fn an_allow_list_opens_exactly_what_it_names() {
    let egress = public("10.2.0.0/16, hooks.internal:8443,any.internal,192.168.7.7, 127.0.0.1:9000, [fd00::5]:80,fd01::/64");
    for (addr, host, port, expected) in [
        ("10.2.3.4", "x", 80, true),
        ("10.3.0.0", "x", 80, false),
        ("192.168.7.7", "x", 1, true),
        ("192.168.7.8", "x", 1, false),
        ("127.0.0.1", "x", 9000, true),
        ("127.0.0.1", "x", 9001, false),
        ("::ffff:10.2.3.4", "x", 80, true),
        ("fd00::5", "x", 80, true),
        ("fd00::5", "x", 81, false),
        ("fd01::5", "x", 81, true),
        ("172.16.0.1", "hooks.internal", 8443, true),
        ("172.16.0.1", "HOOKS.internal.", 8443, true),
        ("172.16.0.1", "hooks.internal", 443, false),
        ("172.16.0.1", "evil-hooks.internal", 8443, false),
        ("172.16.0.1", "any.internal", 1, true),
        ("169.254.169.254", "any.internal", 80, false),
    ] {
        assert_eq!(egress.check(addr.parse().unwrap(), host, port).is_ok(), expected, "{addr} {host}:{port}");
    }
}

#[test]
fn metadata_and_link_local_open_only_by_their_exact_address() {
    for allow in ["169.254.0.0/16", "0.0.0.0/0,::/0", "169.254.169.254/31", "host.example"] {
        assert!(!is_open(&public(allow), "169.254.169.254"), "{allow}");
        assert!(!is_open(&public(allow), "169.254.7.7"), "{allow}");
        assert!(!is_open(&public(allow), "fd00:ec2::254"), "{allow}");
    }
    assert!(is_open(&public("169.254.169.254/32"), "169.254.169.254"));
    assert!(is_open(&Egress::parse("private", "169.254.169.254").unwrap(), "169.254.169.254"));
    assert!(!is_open(&public("169.254.169.254/32"), "169.254.169.253"));
    assert!(is_open(&public("fd00:ec2::254/128"), "fd00:ec2::254"));
}

#[test]
fn a_url_with_a_denied_address_is_refused_in_every_spelling() {
    let metadata = ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:a9fe:a9fe]"];
    let loopback = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "１２７.０.０.１",
        "[::ffff:7f00:1]",
        "[::1]",
        "localhost",
    ];
    let refuses = |egress: &Egress, host: &str| {
        egress.check_literal(&CallbackUrl::parse(&format!("http://{host}:8080/hook")).unwrap()).is_err()
    };
    for host in metadata {
        assert!(refuses(&private(), host) && refuses(&public(""), host), "{host}");
    }
    for host in loopback.into_iter().chain(["localhost.", "a.localhost", "LOCALHOST", "0", "[::]"]) {
        assert!(refuses(&public(""), host), "{host}");
    }
    for host in loopback {
        assert!(!refuses(&private(), host), "{host}");
    }
    assert!(!refuses(&public(""), "example.com"));
    assert!(!refuses(&public("localhost:8080"), "localhost"));
    assert!(refuses(&public("localhost:8081"), "localhost"));
}

#[test]
fn a_refusal_names_the_address_the_rule_and_the_setting() {
    let refusal = |egress: &Egress, addr: &str| egress.check(addr.parse().unwrap(), "h", 80).unwrap_err().to_string();
    assert_eq!(
        refusal(&public(""), "::ffff:10.0.0.5"),
        "the address 10.0.0.5 is closed to callbacks: private network 10.0.0.0/8, EGRESS=public; EGRESS_ALLOW can open it"
    );
    assert_eq!(
        refusal(&private(), "169.254.169.254"),
        "the address 169.254.169.254 is closed to callbacks: cloud metadata 169.254.169.254/32, EGRESS=private; only its exact \
         address in EGRESS_ALLOW opens it"
    );
}

#[test]
fn bad_settings_are_refused_by_name() {
    for (policy, allow, complaint) in [
        ("", "", "EGRESS must be private or public"),
        ("Public", "", "EGRESS must be private or public"),
        ("public", "10.0.0.0/33", "EGRESS_ALLOW must list networks"),
        ("public", "10.0.0/8", "EGRESS_ALLOW must list networks"),
        ("public", "host:0", "EGRESS_ALLOW must list networks"),
        ("public", "host:65536", "EGRESS_ALLOW must list networks"),
        ("public", "host:http", "EGRESS_ALLOW must list networks"),
        ("public", "a b", "EGRESS_ALLOW must list networks"),
        ("public", "*.internal", "EGRESS_ALLOW must list networks"),
        ("public", "::ffff:10.0.0.0/104", "EGRESS_ALLOW must name IPv4 networks as IPv4"),
    ] {
        let refusal = Egress::parse(policy, allow).unwrap_err().to_string();
        assert!(refusal.starts_with(complaint), "{policy} {allow}: {refusal}");
    }
}

#[test]
fn the_policy_in_force_can_be_read() {
    assert_eq!(private().to_string(), "private");
    assert_eq!(public("10.2.0.0/16,Hooks.Internal:8443,").to_string(), "public, opened for 10.2.0.0/16, hooks.internal:8443");
}
