//! The tables that commands print, compared with `tables.txt`. `UPDATE_TABLES=1` writes the file.

use serde_json::json;

use super::Shell;
use crate::rig::{Backend, Service, beside_others, eventually, for_each_store};

for_each_store!(tables_read_as_they_are_written_down,);

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/terminal/tables.txt");
const WRITTEN_DOWN: &str = include_str!("tables.txt");
/// Members of a timer that are different in each run.
const CHANGING: [&str; 5] = ["created_at", "updated_at", "paused_at", "time_left", "execute_at"];

async fn tables_read_as_they_are_written_down(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let (client, shell) = (service.client(), Shell::at(&backend, &service));
    let id = |n: u32| format!("01890a5d-ac96-774b-bcce-b302099a805{n}");
    let callback = json!({"type": "http", "url": "http://127.0.0.1:9/hook", "payload": {"n": 1.5}, "timeout": "7s"});
    for (n, more) in [
        (1, json!({"namespace": "shop", "group": "g", "metadata": {"customer": 42}, "delay": "1h"})),
        (2, json!({"namespace": "shop", "correlation_id": "ü", "delay": "2h", "delivery": "at_most_once"})),
        (3, json!({"namespace": "other", "delay": "10ms"})),
    ] {
        let mut timer = json!({"id": id(n), "callback": callback});
        timer.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        client.create(&timer).await;
    }
    shell.json(&["pause", &id(2)]);
    eventually("a failed timer", std::time::Duration::from_secs(20), async || (client.count("failed").await > 0).then_some(()))
        .await;

    let columns = "--columns=status,id,namespace,group,callback_type";
    let commands: [&[&str]; 6] = [
        &["list", "ns:shop", "--sort", "execute_at", "--order", "asc", columns],
        &["list", "status:canceled", columns],
        &["get", &id(1)],
        &["get", &id(2)],
        &["attempts", &id(3), "--columns=number,outcome,status"],
        &["cancel", "--filter", "ns:shop", "--dry-run", columns],
    ];
    let mut shown = String::new();
    for arguments in commands {
        let said = shell.run(&[arguments, &["-o", "table", "--utc"]].concat());
        assert_eq!(said.exit, 0, "{arguments:?}: {said:?}");
        shown += &format!("$ timer {}\n{}{}\n", arguments.join(" "), said.err, normalized(&said.out));
    }
    if std::env::var_os("UPDATE_TABLES").is_some() {
        std::fs::write(FILE, &shown).expect("the file is written");
    } else {
        assert_eq!(shown, WRITTEN_DOWN, "`UPDATE_TABLES=1` writes it down anew");
    }
}

/// Without the values that are different in each run.
fn normalized(table: &str) -> String {
    let line = |line: &str| {
        let name = line.split(' ').next().unwrap_or_default();
        let value = if CHANGING.contains(&name) { line.len() - line[name.len()..].trim_start().len() } else { line.len() };
        format!("{}\n", if value < line.len() { format!("{}…", &line[..value]) } else { line.to_owned() })
    };
    table.lines().map(line).collect()
}
