//! Keys that are bound to namespaces. There are few of them, and the keyring keeps them at hand.

use domain::{Access, AccessKey, AccessKeyId, Namespace, Namespaces, Rights, Timestamp};
use rusqlite::{Connection, Row, params};
use store::Unreadable;
use store_sql::{column, sql};
use uuid::Uuid;

use crate::{failure::Failure, tally::Tally, writer::Write};

const ADD: &str = sql!("sql/add_key.sql");
const KEYS: &str = sql!("sql/keys.sql");
const REVOKE: &str = sql!("sql/revoke_key.sql");

pub struct AddKey {
    pub key: AccessKey,
}

impl Write for AddKey {
    type Answer = bool;
    const NAME: &'static str = "add_key";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<bool, Failure> {
        let AccessKey { id, name, hash, access, created_at, revoked_at } = &self.key;
        let added = connection.prepare_cached(ADD)?.execute(params![
            id.0.as_bytes(),
            name,
            hash,
            to_column(&access.namespaces),
            access.rights.as_str(),
            created_at.as_micros(),
            revoked_at.map(Timestamp::as_micros)
        ])?;
        Ok(added == 1)
    }
}

pub struct RevokeKey {
    pub id: AccessKeyId,
    pub now: Timestamp,
}

impl Write for RevokeKey {
    type Answer = bool;
    const NAME: &'static str = "revoke_key";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<bool, Failure> {
        Ok(connection.prepare_cached(REVOKE)?.execute(params![self.id.0.as_bytes(), self.now.as_micros()])? == 1)
    }
}

pub fn keys(connection: &Connection) -> Result<Vec<AccessKey>, Failure> {
    let mut statement = connection.prepare_cached(KEYS)?;
    let mut rows = statement.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        match key(row)? {
            Ok(key) => keys.push(key),
            // It opens nothing, and does not lock out the holders of other keys.
            Err(error) => tracing::error!(error = %error, "an access key cannot be read"),
        }
    }
    Ok(keys)
}

fn key(row: &Row<'_>) -> rusqlite::Result<Result<AccessKey, Unreadable>> {
    let id = AccessKeyId(Uuid::from_bytes(row.get(column!(KEYS, "id"))?));
    let (namespaces, rights): (Option<String>, String) =
        (row.get(column!(KEYS, "namespaces"))?, row.get(column!(KEYS, "rights"))?);
    let (namespaces, rights) = match (from_column(namespaces.as_deref()), Rights::parse(&rights)) {
        (Some(namespaces), Some(rights)) => (namespaces, rights),
        (None, _) => return Ok(Err(Unreadable(format!("the namespaces of key {id} are not known")))),
        (_, None) => return Ok(Err(Unreadable(format!("the rights of key {id} are not known")))),
    };
    Ok(Ok(AccessKey {
        id,
        name: row.get(column!(KEYS, "name"))?,
        hash: row.get(column!(KEYS, "hash"))?,
        access: Access { namespaces, rights },
        created_at: Timestamp::from_micros(row.get(column!(KEYS, "created_at"))?),
        revoked_at: row.get::<_, Option<i64>>(column!(KEYS, "revoked_at"))?.map(Timestamp::from_micros),
    }))
}

fn to_column(namespaces: &Namespaces) -> Option<String> {
    match namespaces {
        Namespaces::All => None,
        Namespaces::Only(bound) => {
            Some(serde_json::Value::from_iter(bound.iter().map(|namespace| namespace.as_str())).to_string())
        }
    }
}

fn from_column(text: Option<&str>) -> Option<Namespaces> {
    let Some(text) = text else { return Some(Namespaces::All) };
    let names: Vec<String> = serde_json::from_str(text).ok()?;
    let bound: Result<_, _> = names.iter().map(|name| Namespace::parse(name)).collect();
    bound.ok().map(Namespaces::Only)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Namespaces {
        Namespaces::Only(names.iter().map(|name| Namespace::parse(name).unwrap()).collect())
    }

    #[test]
    fn namespaces_read_back_as_they_are_written() {
        for (namespaces, text) in [
            (Namespaces::All, None),
            (only(&["a"]), Some(r#"["a"]"#)),
            (only(&["b, c", "\"é\"", "a"]), Some(r#"["b, c","\"é\"","a"]"#)),
            (only(&["null"]), Some(r#"["null"]"#)),
        ] {
            assert_eq!(to_column(&namespaces).as_deref(), text);
            assert_eq!(from_column(text), Some(namespaces));
        }
    }

    #[test]
    fn what_cannot_be_understood_opens_nothing() {
        for text in ["", "null", "*", "a", "{}", "[1]", r#"[""]"#, r#"["a""#] {
            assert_eq!(from_column(Some(text)), None, "{text}");
        }
        assert_eq!(from_column(Some("[]")), Some(only(&[])));
    }
}
