//! Changes of everything that matches a filter.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Error, Filter, Json, Operation, Request, Timers};

/// A change of every timer that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Bulk {
    /// `cancel`, `fire`, `retry`, `reschedule`, `pause`, `resume`, `expire` or `delete`.
    pub action: String,
    pub filter: Filter,
    /// The new due times, for `reschedule`: `{"execute_at": …}`, `{"shift": "+1h"}` or `{"spread": "10m"}`.
    pub set: Option<Value>,
}

/// What a bulk change did, or began.
#[derive(Debug, Clone, PartialEq)]
pub enum Bulked {
    Done {
        changed: u64,
        skipped: u64,
    },
    /// There are more than 1,000 timers: it goes on in the background.
    Started(Operation),
}

/// What a bulk change would meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BulkPreview {
    pub matched: u64,
    pub matched_is_estimate: bool,
    pub by_status: CountByStatus,
    /// Some of them, as lists show them.
    pub examples: Vec<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CountByStatus {
    pub pending: u64,
    pub executing: u64,
    pub completed: u64,
    pub failed: u64,
    pub canceled: u64,
    pub paused: u64,
    pub expired: u64,
}

/// Which pending timers [`Timers::cancel_matching`] cancels.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CancelMatching {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// Members that their metadata has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// `pending`, which is the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// How many matched, and how many were canceled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Canceled {
    pub matched: u64,
    pub canceled: u64,
}

impl Timers<'_> {
    /// Counts what a bulk change would meet, and changes nothing.
    pub async fn bulk_preview(&self, bulk: &Bulk) -> Result<BulkPreview, Error> {
        self.bulk_preview_raw(bulk).await?.parse()
    }

    /// The same as the service sent it.
    pub async fn bulk_preview_raw(&self, bulk: &Bulk) -> Result<Json, Error> {
        let mut body = body(bulk);
        body["dry_run"] = true.into();
        Ok(self.client.call(&Request::post("/timers/bulk").json(body.to_string()).repeatable()).await?.data)
    }

    /// Changes everything that matches, or nothing if that is more than `expected_max`.
    pub async fn bulk(&self, bulk: &Bulk, expected_max: u64) -> Result<Bulked, Error> {
        #[derive(Deserialize)]
        struct Changed {
            changed: Option<u64>,
            skipped: Option<u64>,
            operation: Option<Operation>,
        }
        let mut body = body(bulk);
        body["expected_max"] = expected_max.into();
        let answer = self.client.call(&Request::post("/timers/bulk").json(body.to_string())).await?;
        let Changed { changed, skipped, operation } = answer.data.parse()?;
        Ok(match operation {
            Some(operation) => Bulked::Started(operation),
            None => Bulked::Done { changed: changed.unwrap_or_default(), skipped: skipped.unwrap_or_default() },
        })
    }

    /// Cancels the pending timers that match, or none if those are more than `expected_max`.
    pub async fn cancel_matching(&self, which: &CancelMatching, expected_max: u64) -> Result<Canceled, Error> {
        let mut body = serde_json::to_value(which).map_err(|error| Error::Usage(format!("this is not JSON: {error}")))?;
        body["expected_max"] = expected_max.into();
        self.client.call(&Request::post("/timers/cancel").json(body.to_string())).await?.data.parse()
    }
}

fn body(bulk: &Bulk) -> Value {
    let mut body = json!({"action": bulk.action, "filter": bulk.filter.object()});
    if let Some(set) = &bulk.set {
        body["set"] = set.clone();
    }
    body
}
