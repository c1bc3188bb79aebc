//! Bulk changes that go on in the background, and groups.

use http::Method;
use serde::{Deserialize, Serialize};

use crate::{Canceled, Client, CountByStatus, Error, Instant, Json, Request, by::encoded, wire};

/// The calls about operations: bulk changes of many timers.
#[derive(Debug, Clone, Copy)]
pub struct Operations<'a>(pub(crate) &'a Client);

/// A bulk change of many timers, which goes on in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Operation {
    pub id: String,
    pub action: String,
    pub filter: Json,
    /// `running`, `done`, `stopped` or `failed`.
    pub state: String,
    pub matched: u64,
    pub changed: u64,
    pub skipped: u64,
    pub errors: u64,
    pub error: Option<String>,
    #[serde(with = "wire::instant")]
    pub started_at: Instant,
    #[serde(with = "wire::some_instant")]
    pub finished_at: Option<Instant>,
    /// The name of the API key that began it.
    pub by: String,
}

impl Operations<'_> {
    /// The latest.
    pub async fn list(&self) -> Result<Vec<Operation>, Error> {
        #[derive(Deserialize)]
        struct List {
            operations: Vec<Operation>,
        }
        Ok(self.0.read("/operations").await?.parse::<List>()?.operations)
    }

    pub async fn get(&self, id: &str) -> Result<Operation, Error> {
        self.0.read(&path(id)).await?.parse()
    }

    /// Stops it; what it has changed stays so.
    pub async fn stop(&self, id: &str) -> Result<Operation, Error> {
        self.0.call(&Request::new(Method::DELETE, path(id))).await?.data.parse()
    }
}

fn path(id: &str) -> String {
    format!("/operations/{}", encoded(id))
}

/// The calls about groups of timers.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a>(pub(crate) &'a Client);

/// How many timers a group has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Group {
    pub namespace: String,
    pub group: String,
    pub total: u64,
    pub total_is_estimate: bool,
    pub by_status: CountByStatus,
}

impl Groups<'_> {
    /// Counts the timers of a group by status.
    pub async fn get(&self, namespace: &str, group: &str) -> Result<Group, Error> {
        self.0.read(&group_path(namespace, group)).await?.parse()
    }

    /// Cancels the timers of a group that wait.
    pub async fn cancel(&self, namespace: &str, group: &str) -> Result<Canceled, Error> {
        self.0.call(&Request::new(Method::DELETE, group_path(namespace, group))).await?.data.parse()
    }
}

fn group_path(namespace: &str, group: &str) -> String {
    format!("/groups/{}/{}", encoded(namespace), encoded(group))
}
