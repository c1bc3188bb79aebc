//! A setting that cannot be right keeps the service from starting: code 2, and one line that says which it is. Which values are refused,
//! and with which sentence, is tested beside the settings; here is one for each way in which a start can end.

use std::process::Output;

use crate::rig::{API_KEY, Backend, beside_others, timer};

/// Stands in every value that is refused: it must not stand in what is said about it.
const SECRET: &str = "Tr0ub4dor";

#[tokio::test]
async fn a_bad_setting_ends_the_start_with_one_sentence_that_names_it() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let key = ("API_KEY", API_KEY);
    for (settings, variable) in [
        (vec![], "API_KEY"),
        (vec![("API_KEY", "Tr0ub4dor-is-too-short")], "API_KEY"),
        (vec![key, ("PORT", "eighty")], "PORT"),
        (vec![key, ("DATABASE_URL", "oracle://root:Tr0ub4dor@localhost/timers")], "DATABASE_URL"),
        // Only the store itself understands it.
        (vec![key, ("DATABASE_URL", "postgres://timer:Tr0ub4dor@host:port/x")], "DATABASE_URL"),
        (vec![key, ("PG_PASSWORD", SECRET)], "PG_PASSWORD is set, but PG_HOST is not"),
        (vec![key, ("RUST_LOG", "info,=,nonsense=loud")], "RUST_LOG"),
    ] {
        let output = timer(backend.home()).arg("serve").envs(settings.iter().copied()).output().expect("the binary runs");
        assert_one_sentence(&output, 2, variable, &format!("{settings:?}"));
    }
    let left: Vec<_> = backend.home().read_dir().expect("the directory").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "a start that was refused leaves nothing behind: {left:?}");
}

#[tokio::test]
async fn a_taken_port_is_said_in_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let settings = [("API_KEY", API_KEY), ("BIND", "127.0.0.1"), ("PORT", &port), ("DATABASE_URL", backend.url())];
    let output = timer(backend.home()).arg("serve").envs(settings).output().expect("the binary runs");
    assert_one_sentence(&output, 2, "PORT", "a taken port");
}

#[tokio::test]
async fn a_database_in_a_directory_that_is_missing_is_said_in_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let path = backend.home().join("missing/timers.db").display().to_string();
    let usual = [("API_KEY", API_KEY), ("BIND", "127.0.0.1"), ("PORT", "0")];
    for (variable, value) in [("DATABASE_URL", format!("sqlite://{path}")), ("TIMER_DB_PATH", path.clone())] {
        let output = timer(backend.home()).arg("serve").envs(usual).env(variable, &value).output().expect("the binary runs");
        assert_one_sentence(&output, 2, variable, &format!("{variable}={value}"));
        assert!(String::from_utf8_lossy(&output.stderr).contains("missing"), "{output:?}");
    }
}

#[tokio::test]
async fn a_bad_flag_is_explained() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    for arguments in [vec!["serve", "--prot", "80"], vec!["sevre"], vec![]] {
        let output = timer(backend.home()).args(&arguments).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: timer"), "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_dotenv_file_is_read_and_the_environment_wins() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    std::fs::write(backend.home().join(".env"), format!("API_KEY={API_KEY}\nMIN_DELAY=nonsense\nPORT=nonsense\n"))
        .expect("a file");
    let output = timer(backend.home()).arg("serve").env("PORT", "0").output().expect("the binary runs");
    assert_one_sentence(&output, 2, "MIN_DELAY", "a .env file");
}

fn assert_one_sentence(output: &Output, code: i32, variable: &str, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{what}: {said}");
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert!(said.contains(variable) && said.trim_end().ends_with('.'), "{what}: {said}");
    assert!(!said.contains(SECRET) && !said.contains(API_KEY), "{what}: {said}");
    assert!(output.stdout.is_empty(), "{what}: {output:?}");
}
