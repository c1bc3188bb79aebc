//! `timer status`: the processes that share the work, as a running service sees them.

use http::Method;
use serde_json::Value;
use terminal::table;

use crate::{
    cli::StatusOptions,
    exit::{Failure, print},
    service_call::{ask, text},
};

pub fn main(options: &StatusOptions) -> Result<(), Failure> {
    let cluster = ask(&options.service, Method::GET, "/cluster", None)?;
    if options.json {
        print(format_args!("{cluster}"));
    } else {
        print(format_args!("{}", report(&cluster)));
    }
    Ok(())
}

fn report(cluster: &Value) -> String {
    let nodes = cluster["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shards = cluster["shards"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_alive = |owner: &Value| nodes.iter().any(|node| node["id"] == *owner && node["alive"] == true);
    let held = shards.iter().filter(|shard| is_alive(&shard["owner"])).count();
    let late = cluster["oldest_overdue_seconds"].as_f64().unwrap_or_default();
    let late = if late > 0.0 { format!("the oldest waiting timer is {late:.3} s late") } else { "nothing is late".to_owned() };
    let moves: i64 = shards.iter().filter_map(|shard| shard["epoch"].as_i64()).sum();
    let head = ["NODE", "NAME", "VERSION", "STARTED", "STATE", "SHARDS", "CLOCK"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(nodes.iter().map(row)).collect();
    format!("{}\n\n{held} of {} shards are held, after {moves} acquisitions; {late}.", table(&rows), shards.len())
}

fn row(node: &Value) -> [String; 7] {
    let state = match (node["alive"] == true, node["takes_shards"] == true) {
        (false, _) => "dead".to_owned(),
        (true, true) => "alive".to_owned(),
        (true, false) => "alive, takes no shards".to_owned(),
    };
    let skew = node["clock_skew_seconds"].as_f64().unwrap_or_default();
    [
        text(&node["id"]),
        text(&node["name"]),
        text(&node["version"]),
        text(&node["started_at"]),
        state,
        node["shards"].to_string(),
        format!("{skew:+.3} s"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_listed_and_shards_counted() {
        let node = |id: &str, alive: bool, takes: bool| {
            json!({"id": id, "name": format!("{id}:8080"), "version": "1", "started_at": "then", "alive": alive,
                "takes_shards": takes, "shards": 1, "clock_skew_seconds": -0.0125})
        };
        let shard = |owner: Value| json!({"shard": 0, "epoch": 2, "owner": owner});
        let cluster = json!({
            "nodes": [node("a", true, true), node("b", false, true), node("c", true, false)],
            "shards": [shard(json!("a")), shard(json!("b")), shard(Value::Null)],
            "oldest_overdue_seconds": 0.25
        });
        assert_eq!(
            report(&cluster),
            "NODE  NAME    VERSION  STARTED  STATE                   SHARDS  CLOCK\n\
             a     a:8080  1        then     alive                   1       -0.013 s\n\
             b     b:8080  1        then     dead                    1       -0.013 s\n\
             c     c:8080  1        then     alive, takes no shards  1       -0.013 s\n\n\
             1 of 3 shards are held, after 6 acquisitions; the oldest waiting timer is 0.250 s late."
        );
    }
}
