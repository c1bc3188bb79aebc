//! `timer keys`: keys for tenants, issued, listed and revoked at a running service.

use http::Method;
use serde_json::{Value, json};
use terminal::table;

use crate::{
    cli::{CreateKeyOptions, KeysCommand, ListKeysOptions, RevokeKeyOptions},
    exit::{Failure, print, say},
    service_call::{ask, text},
};

pub fn main(command: &KeysCommand) -> Result<(), Failure> {
    match command {
        KeysCommand::Create(options) => create(options),
        KeysCommand::List(options) => list(options),
        KeysCommand::Revoke(options) => revoke(options),
    }
}

/// Only the key goes to standard output, so that a script can take it from there.
fn create(options: &CreateKeyOptions) -> Result<(), Failure> {
    let namespaces = (!options.all_namespaces).then_some(&options.namespaces);
    let rights = if options.read_only { "read" } else { "write" };
    let wanted = json!({"name": options.name, "namespaces": namespaces, "rights": rights});
    let issued = ask(&options.service, Method::POST, "/keys", Some(&wanted))?;
    print(format_args!("{}", text(&issued["key"])));
    let opens = namespaces_of(&issued);
    let rights = if options.read_only { "to read" } else { "to read and write" };
    say(format_args!("Key {} opens {opens}, {rights}. It is shown this once: keep it.", text(&issued["id"])));
    Ok(())
}

fn list(options: &ListKeysOptions) -> Result<(), Failure> {
    let data = ask(&options.service, Method::GET, "/keys", None)?;
    if options.json {
        print(format_args!("{}", data["keys"]));
        return Ok(());
    }
    let keys = data["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    if keys.is_empty() {
        say(format_args!("No key was issued yet: see `timer keys create --help`."));
        return Ok(());
    }
    let head = ["ID", "NAME", "NAMESPACES", "RIGHTS", "CREATED", "LAST USED", "REVOKED"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(keys.iter().map(row)).collect();
    print(format_args!("{}", table(&rows)));
    Ok(())
}

fn revoke(options: &RevokeKeyOptions) -> Result<(), Failure> {
    let id = domain::AccessKeyId::parse(&options.id)?;
    ask(&options.service, Method::DELETE, &format!("/keys/{id}"), None)?;
    say(format_args!("Key {id} is revoked."));
    Ok(())
}

fn row(key: &Value) -> [String; 7] {
    let time = |name: &str| if key[name].is_null() { "-".to_owned() } else { text(&key[name]) };
    let [created, used, revoked] = ["created_at", "last_used_at", "revoked_at"].map(time);
    [text(&key["id"]), text(&key["name"]), namespaces_of(key), text(&key["rights"]), created, used, revoked]
}

fn namespaces_of(key: &Value) -> String {
    match key["namespaces"].as_array() {
        Some(names) => names.iter().map(text).collect::<Vec<_>>().join(", "),
        None => "all namespaces".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_names_opens_everything() {
        assert_eq!(namespaces_of(&json!({"namespaces": null})), "all namespaces");
        assert_eq!(namespaces_of(&json!({"namespaces": ["a", "b"]})), "a, b");
        let key = json!({"id": "i", "name": "n", "namespaces": ["a"], "rights": "read", "created_at": "then", "last_used_at": "now", "revoked_at": null});
        assert_eq!(row(&key), ["i", "n", "a", "read", "then", "now", "-"]);
    }
}
