use std::fmt;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Client, Error, Instant, Request, by::encoded, wire};

/// The calls about API keys, for the administrator.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a>(pub(crate) &'a Client);

/// A key that was issued, without what opens anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    pub id: String,
    pub name: String,
    /// `None`: all of them.
    pub namespaces: Option<Vec<String>>,
    /// `read` or `write`.
    pub rights: String,
    #[serde(with = "wire::instant")]
    pub created_at: Instant,
    /// To the minute; `None` if no use of it is recorded.
    #[serde(default, with = "wire::some_instant")]
    pub last_used_at: Option<Instant>,
    #[serde(with = "wire::some_instant")]
    pub revoked_at: Option<Instant>,
}

/// A new key: the only time that it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IssuedKey {
    #[serde(flatten)]
    pub about: Key,
    pub key: String,
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKey").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Keys<'_> {
    /// Issues a key for these namespaces, or for all.
    pub async fn create(&self, name: &str, namespaces: Option<&[&str]>, rights: &str) -> Result<IssuedKey, Error> {
        let body = json!({"name": name, "namespaces": namespaces, "rights": rights});
        self.0.call(&Request::post("/keys").json(body.to_string())).await?.data.parse()
    }

    pub async fn list(&self) -> Result<Vec<Key>, Error> {
        #[derive(Deserialize)]
        struct List {
            keys: Vec<Key>,
        }
        Ok(self.0.call(&Request::get("/keys")).await?.data.parse::<List>()?.keys)
    }

    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        self.0.call(&Request::new(Method::DELETE, format!("/keys/{}", encoded(id)))).await.map(drop)
    }
}
