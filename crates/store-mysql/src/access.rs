//! Keys that are bound to namespaces. There are few of them, and every node reads all of them.

use domain::{Access, AccessKey, AccessKeyId, Invalid, Namespace, Namespaces, Rights, Timestamp};
use sqlx::{Row, mysql::MySqlRow};
use store::Unreadable;
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step, Verdict},
    rows::json,
    session::Session,
};

pub(crate) const ADD_KEY: &str = sql!("sql/add_key.sql");
pub(crate) const KEYS: &str = sql!("sql/keys.sql");
pub(crate) const REVOKE_KEY: &str = sql!("sql/revoke_key.sql");

pub struct AddKey(pub AccessKey);

impl Call<Connector> for AddKey {
    type Answer = bool;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<bool, Failure> {
        let AccessKey { id, name, hash, access, created_at, revoked_at } = &self.0;
        let namespaces = match &access.namespaces {
            Namespaces::All => None,
            Namespaces::Only(bound) => Some(json(&bound.iter().map(Namespace::as_str).collect::<Vec<_>>())?),
        };
        let added = sqlx::query(ADD_KEY)
            .bind(id.0)
            .bind(hash.as_slice())
            .bind(created_at.as_micros())
            .bind(revoked_at.map(Timestamp::as_micros))
            .bind(name)
            .bind(access.rights.as_str())
            .bind(namespaces)
            .execute(session)
            .await
            .or_unknown();
        match added {
            Ok(_) => Ok(true),
            // Its id or its hash is there already.
            Err(failure) if failure.verdict == Verdict::Duplicate => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

pub struct Keys;

impl Call<Connector> for Keys {
    type Answer = Vec<AccessKey>;
    const WRITES: bool = false;

    /// One key that cannot be read fails all of them: to go on without it could look as if no keys were wanted here.
    async fn run(&self, session: &mut Session) -> Result<Vec<AccessKey>, Failure> {
        sqlx::query(KEYS).fetch_all(session).await.or_not_done()?.iter().map(key).collect()
    }
}

fn key(row: &MySqlRow) -> Result<AccessKey, Failure> {
    let unreadable = |what: &str| Unreadable(format!("the {what} of an access key cannot be read"));
    let namespaces = match row.try_get::<Option<&str>, _>("namespaces").or_not_done()? {
        None => Namespaces::All,
        Some(bound) => {
            let bound: Vec<String> = serde_json::from_str(bound).map_err(|_| unreadable("namespaces"))?;
            let bound: Result<Vec<_>, Invalid> = bound.iter().map(|text| Namespace::parse(text)).collect();
            Namespaces::Only(bound.map_err(|_| unreadable("namespaces"))?)
        }
    };
    let rights = Rights::parse(row.try_get("rights").or_not_done()?).ok_or_else(|| unreadable("rights"))?;
    let hash: Vec<u8> = row.try_get("hash").or_not_done()?;
    Ok(AccessKey {
        id: AccessKeyId(row.try_get("id").or_not_done()?),
        name: row.try_get("name").or_not_done()?,
        hash: hash.try_into().map_err(|_| unreadable("hash"))?,
        access: Access { namespaces, rights },
        created_at: Timestamp::from_micros(row.try_get("created_at").or_not_done()?),
        revoked_at: row.try_get::<Option<i64>, _>("revoked_at").or_not_done()?.map(Timestamp::from_micros),
    })
}

pub struct RevokeKey {
    pub id: AccessKeyId,
    pub now: Timestamp,
}

impl Call<Connector> for RevokeKey {
    type Answer = bool;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<bool, Failure> {
        let query = sqlx::query(REVOKE_KEY).bind(self.now.as_micros()).bind(self.id.0);
        Ok(query.execute(session).await.or_unknown()?.rows_affected() == 1)
    }
}
