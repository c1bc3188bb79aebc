use domain::AttemptLog;

use super::*;
use crate::{
    cli::{self, Command},
    values::sentence_of,
};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The settings that these flags give, or the sentence they end with. Flags, because tests share one environment.
fn settings(flags: &[&str]) -> Result<Settings, String> {
    settings_with(flags, Some(Secret::new(KEY.to_owned())))
}

fn settings_with(flags: &[&str], api_key: Option<Secret>) -> Result<Settings, String> {
    let bind = IpAddr::from([0, 0, 0, 0]);
    let defaults = Defaults { api_key, bind, signing_secret: None, answer_bytes_max: 0 };
    Settings::resolve(&options(flags)?, defaults).map_err(|failure| failure.to_string())
}

fn options(flags: &[&str]) -> Result<Options, String> {
    match cli::try_parse(["timer", "serve"].iter().chain(flags)) {
        Ok(Command::Serve(options)) => Ok(options),
        Ok(_) => panic!("it was told to serve"),
        Err(error) => Err(sentence_of(&error).unwrap_or_else(|| panic!("{error}")).to_owned()),
    }
}

#[test]
fn every_bad_value_ends_in_a_sentence_that_names_its_variable() {
    for (flags, sentence) in [
        (vec!["--api-key", "short"], "API_KEY must have at least 32 characters."),
        (vec!["--api-key", "0123456789abcdef 0123456789abcdef"], "API_KEY must be printable ASCII without blanks"),
        (vec!["--port", "http"], "PORT must be a number between 0 and 65535."),
        (vec!["--port=-1"], "PORT must be a number between 0 and 65535."),
        (vec!["--port", "65536"], "PORT must be a number between 0 and 65535."),
        (vec!["--connections-per-address-max", "0"], "CONNECTIONS_PER_ADDRESS_MAX must be a number between 1 and 1000000."),
        (vec!["--bind", "everywhere"], "BIND must be an IP address"),
        (vec!["--database-url", "gopher://db"], "DATABASE_URL must begin with sqlite://"),
        (vec!["--database-url", "oracle://root:tooshort@localhost/timers"], "DATABASE_URL must begin with sqlite://"),
        (vec!["--database-url", "timers.db"], "DATABASE_URL must begin with sqlite://"),
        (vec!["--database-url", "sqlite://a.db", "--pg-host", "db"], "DATABASE_URL and PG_HOST are both set"),
        (vec!["--database-url", "sqlite://"], "DATABASE_URL must begin with sqlite://"),
        (vec!["--database-url", "sqlite://x.db?mode=rwc"], "DATABASE_URL must be sqlite:// and a path"),
        (vec!["--pg-user", "u"], "PG_USER is set, but PG_HOST is not"),
        (vec!["--pg-db-name", "n"], "PG_DB_NAME is set, but PG_HOST is not"),
        (vec!["--pg-password", "tooshort"], "PG_PASSWORD is set, but PG_HOST is not"),
        (vec!["--pg-host", "db", "--pg-password", "tooshort"], "PG_USER is required together with PG_HOST."),
        (vec!["--pg-host", "db"], "PG_USER is required together with PG_HOST."),
        (vec!["--pg-host", "db", "--pg-user", "u"], "PG_DB_NAME is required together with PG_HOST."),
        (vec!["--pg-host", "db", "--pg-user", "u", "--pg-db-name", "n", "--pg-port", "x"], "PG_PORT must be a number"),
        (vec!["--pg-host", "db", "--db-path", "f"], "TIMER_DB_PATH and PG_HOST are both set: give only one of them."),
        (vec!["--min-delay", "5"], "MIN_DELAY must be a duration"),
        (vec!["--min-delay", "soon"], "MIN_DELAY must be a duration"),
        (vec!["--min-delay=-5s"], "MIN_DELAY must be a duration"),
        (vec!["--max-horizon", "1"], "MAX_HORIZON must be a duration"),
        (vec!["--max-horizon", "0s"], "MAX_HORIZON must be longer than MIN_DELAY."),
        (vec!["--min-delay", "5s", "--max-horizon", "5s"], "MAX_HORIZON must be longer than MIN_DELAY."),
        (vec!["--retention", "for ever"], "RETENTION must be a duration"),
        (vec!["--overdue-window", "x"], "OVERDUE_WINDOW must be a duration"),
        (vec!["--overdue-window", "5"], "OVERDUE_WINDOW must be a duration"),
        (vec!["--overdue-window", "0s"], "OVERDUE_WINDOW must be longer than 0s."),
        (vec!["--retry-interval-min", "1"], "RETRY_INTERVAL_MIN must be a duration"),
        (vec!["--polling-interval", "0"], "TIMER_POLLING_INTERVAL must be a number between 10 and 60000."),
        (vec!["--polling-interval", "1s"], "TIMER_POLLING_INTERVAL must be a number between 10 and 60000."),
        (vec!["--batch-size", "0"], "TIMER_BATCH_SIZE must be a number between 1 and 10000."),
        (vec!["--in-flight-max", "0"], "IN_FLIGHT_MAX must be a number between 1 and 1000000."),
        (
            vec!["--in-flight-per-destination-max", "many"],
            "IN_FLIGHT_PER_DESTINATION_MAX must be a number between 1 and 1000000.",
        ),
        (vec!["--nats-url", "nats://a", "--nats-host", "b"], "NATS_URL and NATS_HOST are both set: give only one of them."),
        (vec!["--nats-url", "nats://a", "--broker-url", "nats://b"], "NATS_URL and TIMER_BROKER_URL are both set"),
        (vec!["--nats-url", "http://u:tooshort@a"], "NATS_URL must"),
        (vec!["--broker-url", "nats://u:tooshort@"], "TIMER_BROKER_URL must"),
        (vec!["--nats-host", "a b"], "NATS_HOST must"),
        (vec!["--nats-host", "a", "--nats-port", "0"], "NATS_PORT must be a number between 1 and 65535."),
        (vec!["--nats-user", "u"], "NATS_USER is set, but NATS_HOST is not"),
        (vec!["--nats-password", "tooshort"], "NATS_PASSWORD is set, but NATS_HOST is not"),
        (vec!["--nats-host", "a", "--nats-password", "tooshort"], "NATS_USER is required with NATS_PASSWORD."),
        (vec!["--nats-url", "nats://a", "--nats-user", "u"], "NATS_USER is set, but NATS_HOST is not"),
        (vec!["--broker", "nats"], "TIMER_BROKER is nats, but no NATS server is named: set NATS_URL."),
        (vec!["--broker", "kafka", "--nats-url", "nats://a"], "TIMER_BROKER must be nats or off."),
        (vec!["--egress", "open"], "EGRESS must be"),
        (vec!["--egress-allow", "10.0.0.0/99"], "EGRESS_ALLOW "),
        (vec!["--signing-secret", "tooshort"], "SIGNING_SECRET must be"),
        (vec!["--signing-secret", "whsec_tooshort"], "SIGNING_SECRET must be"),
        (vec!["--log-format", "xml"], "LOG_FORMAT must be"),
        (vec!["--attempts", "some"], "ATTEMPTS must be off, failures or all."),
        (vec!["--namespaces-file", "/nowhere/namespaces.json"], "NAMESPACES_FILE cannot be read: "),
        (vec!["--namespaces-file", "/"], "NAMESPACES_FILE cannot be read: "),
    ] {
        let met = settings(&flags).err().unwrap_or_else(|| panic!("{flags:?} should be refused"));
        assert!(met.starts_with(sentence) && met.ends_with('.'), "{flags:?}: {met}");
        assert!(!met.contains("tooshort") && !met.contains("0123456789abcdef"), "a secret is shown: {met}");
    }
}

#[test]
fn a_key_is_required_where_none_is_made_up() {
    // An empty value says the same as none.
    for flags in [[].as_slice(), &["--api-key", ""]] {
        let refused = settings_with(flags, None).err();
        assert_eq!(refused.as_deref(), Some("API_KEY is required: choose one of at least 32 characters."));
    }
}

#[test]
fn the_scheme_picks_the_store() {
    let database = |flags: &[&str]| settings(flags).unwrap().database.describe();
    assert_eq!(database(&[]), "SQLite file timer.db");
    assert_eq!(database(&["--database-url", "sqlite:///var/t.db"]), "SQLite file /var/t.db");
    assert_eq!(database(&["--db-path", "/var/t.db"]), "SQLite file /var/t.db");
    assert_eq!(database(&["--database-url", "postgres://u:p@h/n"]), "PostgreSQL at h/n");
    assert_eq!(database(&["--database-url", "postgresql://u:p@h/n"]), "PostgreSQL at h/n");
    let parts = ["--pg-host", "h", "--pg-user", "u", "--pg-db-name", "n", "--pg-password", "p@:/?"];
    assert_eq!(database(&parts), "PostgreSQL at h:5432/n");
}

#[test]
fn a_nats_server_is_named_by_url_or_in_parts() {
    let nats = |flags: &[&str]| settings(flags).unwrap().nats.map(|options| options.place());
    assert_eq!(nats(&[]), None);
    assert_eq!(nats(&["--nats-url", "nats://u:p@a:4223,nats://b"]).as_deref(), Some("a:4223, b:4222"));
    assert_eq!(nats(&["--broker-url", "tls://a"]).as_deref(), Some("a:4222"));
    assert_eq!(nats(&["--nats-host", "a", "--nats-user", "u", "--nats-password", "p@:/?"]).as_deref(), Some("a:4222"));
    assert!(settings(&["--nats-url", "nats://a", "--broker", "nats"]).unwrap().has_command_consumer);
    assert!(!settings(&["--nats-url", "nats://a"]).unwrap().has_command_consumer);
}

#[test]
fn attempts_that_failed_are_remembered_unless_something_else_is_said() {
    for (flags, attempt_log) in [
        (vec![], AttemptLog::Failures),
        (vec!["--attempts", ""], AttemptLog::Failures),
        (vec!["--attempts", "failures"], AttemptLog::Failures),
        (vec!["--attempts", "off"], AttemptLog::Nothing),
        (vec!["--attempts", "all"], AttemptLog::Everything),
    ] {
        assert_eq!(settings(&flags).unwrap().delivery.attempt_log, attempt_log, "{flags:?}");
    }
}

#[test]
fn how_much_of_an_answer_is_kept_is_a_choice() {
    for (flags, bytes) in [
        (vec![], 0),
        (vec!["--attempts-body", "off"], 0),
        (vec!["--attempts-body", "1k"], 1_024),
        (vec!["--attempts-body", "64k"], 65_536),
    ] {
        assert_eq!(settings(&flags).unwrap().delivery.answer_bytes_max, bytes, "{flags:?}");
    }
    assert!(settings(&["--attempts-body", "2k"]).is_err());
}

/// The settings with this file of namespaces, or the sentence they end with.
fn with_namespaces(text: &str) -> Result<Settings, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    settings(&["--namespaces-file", file.path().to_str().unwrap()])
}

#[test]
fn a_bad_file_of_namespaces_is_refused_by_the_namespace_that_is_wrong() {
    for (text, sentence) in [
        ("", "NAMESPACES_FILE must be valid JSON, but line 1 is not."),
        ("[]", "NAMESPACES_FILE must hold an object."),
        (
            r#"{"shop": {}, "billing": {"signing_secret": "whsec_tooshort"}}"#,
            r#"NAMESPACES_FILE is wrong in namespace "billing": signing_secret must be whsec_ and then 24 to 64 bytes as base64."#,
        ),
        (
            r#"{"billing": {"retry_policy": {"max_retries": 5000}}}"#,
            r#"NAMESPACES_FILE is wrong in namespace "billing": retry_policy.max_retries must be a whole number from 0 to 1000."#,
        ),
        (
            r#"{"billing": {"secret": "whsec_tooshort"}}"#,
            r#"NAMESPACES_FILE is wrong in namespace "billing": there is a field that is none of retry_policy, signing_secret and subjects."#,
        ),
        (
            r#"{"billing": {"subjects": ["billing.>.x"]}}"#,
            r#"NAMESPACES_FILE is wrong in namespace "billing": subjects[0] must be a NATS subject: tokens joined by dots, without blanks, * for one token, > for all at the end."#,
        ),
    ] {
        assert_eq!(with_namespaces(text).err().as_deref(), Some(sentence));
    }
}

#[test]
fn a_file_of_namespaces_gives_them_their_policies() {
    let settings = with_namespaces(r#"{"billing": {"retry_policy": {"max_retries": 7}}}"#).unwrap();
    let definition = |namespace| domain::Definition {
        id: domain::TimerId::random(domain::Timestamp::from_micros(0)),
        namespace: domain::Namespace::parse(namespace).unwrap(),
        key: None,
        asked: domain::RequestedTime::At(domain::Timestamp::from_micros(0)),
        callback: domain::Callback::from_json(r#"{"type":"http","url":"http://127.0.0.1/"}"#).unwrap(),
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: domain::Delivery::AtLeastOnce,
        group: None,
        options: domain::Options::default(),
    };
    let retries = |namespace| settings.delivery.namespaces.retries(&definition(namespace)).map(|policy| policy.max_retries);
    assert_eq!((retries("billing"), retries("shop")), (Some(7), None));
}

#[test]
fn a_filter_of_the_log_must_make_sense() {
    let filter = |text: &str| options(&["--log", text]);
    for text in ["info", "WARN", "off", "", "info,delivery=debug", "warn,scheduler=trace"] {
        assert!(filter(text).is_ok(), "{text}");
    }
    for text in ["loud", "info,loud", "delivery=loud", "info,=,nonsense=loud"] {
        assert!(filter(text).unwrap_err().starts_with("RUST_LOG must be"), "{text}");
    }
}

#[test]
fn a_rate_limit_has_a_burst_of_one_second_unless_it_is_said() {
    let limit = |args: &[&str]| settings(args).map(|settings| settings.rate_limit.map(|limit| (limit.per_second, limit.burst)));
    assert_eq!(limit(&[]).unwrap(), None);
    assert_eq!(limit(&["--rate-limit", "100"]).unwrap(), Some((100, 100)));
    assert_eq!(limit(&["--rate-limit", "100", "--rate-limit-burst", "7"]).unwrap(), Some((100, 7)));
    for (args, sentence) in [
        (["--rate-limit", "0"].as_slice(), "RATE_LIMIT must be a number between 1 and 1000000."),
        (&["--rate-limit", "10/s"], "RATE_LIMIT must be a number between 1 and 1000000."),
        (&["--rate-limit", "1", "--rate-limit-burst", "0"], "RATE_LIMIT_BURST must be a number between 1 and 1000000."),
        (&["--rate-limit-burst", "5"], "RATE_LIMIT_BURST is set, but RATE_LIMIT is not."),
    ] {
        assert_eq!(limit(args).unwrap_err(), sentence);
    }
}

#[test]
fn an_empty_value_counts_as_not_given() {
    let settings = settings(&["--port", "", "--egress", "", "--max-horizon", ""]).unwrap();
    assert_eq!((settings.address.port(), settings.horizon.max_horizon), (8080, None));
}

/// As Kubernetes sets them for services of these names.
#[test]
fn a_port_matters_only_where_its_host_is_named() {
    let ports = ["--pg-port", "tcp://10.0.0.1:5432", "--nats-port", "tcp://10.0.0.2:4222"];
    let settings = settings(&[&ports[..], &["--nats-url", "nats://a", "--database-url", "postgres://h/n"]].concat());
    assert!(settings.is_ok());
}

#[test]
fn options_can_be_printed_without_secrets() {
    let flags = [
        ["--api-key", "Tr0ub4dor-0123456789abcdef0123456789"],
        ["--database-url", "postgres://u:Tr0ub4dor@h/n"],
        ["--pg-password", "Tr0ub4dor"],
        ["--nats-url", "nats://u:Tr0ub4dor@h"],
        ["--nats-password", "Tr0ub4dor"],
        ["--signing-secret", "whsec_Tr0ub4dorTr0ub4dorTr0ub4dorTr0ub4dor"],
    ];
    let printed = format!("{:?}", options(flags.as_flattened()).unwrap());
    assert!(printed.contains("Secret(…)") && !printed.contains("Tr0ub4dor"), "{printed}");
}

#[test]
fn log_lines_lead_to_the_page_of_a_timer_where_its_address_is_known() {
    let page = |flags: &[&str]| settings(flags).unwrap().timer_page();
    let url = ["--console-url", "https://timers.example"];
    assert_eq!(page(&url).as_deref(), Some("https://timers.example/console/timers/"));
    assert_eq!(
        page(&[&url[..], &["--base-path", "/x/y"]].concat()).as_deref(),
        Some("https://timers.example/x/y/console/timers/")
    );
    assert_eq!((page(&[]), page(&[&url[..], &["--console", "off"]].concat())), (None, None));
}
