use std::collections::BTreeMap;

use domain::{Cause, Invalid, JsonText, TimerId, limits};
use serde_json::value::RawValue;
use store::{Filter, StoreError};

use crate::{CommandError, Commands, call};

/// How many timers are read, and canceled, in one call of the store.
pub(crate) const PAGE_TIMERS: usize = 1_000;
/// How many bytes of metadata are in memory at a time.
const METADATA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often a batch whose answer was lost is canceled again, which is idempotent.
const ROUNDS_MAX: u32 = 3;

/// Which timers are to be canceled.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub filter: Filter,
    /// Members that the metadata must have, with these values.
    pub metadata: Members,
    /// When more timers match, the whole request is refused.
    pub expected_max: usize,
}

/// Members of a JSON object, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members(BTreeMap<String, String>);

/// The result of a bulk cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanceledMany {
    pub matched: usize,
    /// The remaining ones were no longer pending.
    pub canceled: usize,
}

impl Members {
    pub fn parse(field: &str, json: &JsonText) -> Result<Self, Invalid> {
        members(json.as_str()).map(Self).ok_or_else(|| Invalid::new(field, "must be an object"))
    }

    /// Whether the metadata has all of them, with the same values. Whitespace between tokens is ignored.
    pub fn are_in(&self, metadata: Option<&JsonText>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let Some(there) = metadata.and_then(|metadata| members(metadata.as_str())) else { return false };
        self.0.iter().all(|(name, value)| there.get(name) == Some(value))
    }
}

fn members(text: &str) -> Option<BTreeMap<String, String>> {
    let raw: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    Some(raw.into_iter().map(|(name, value)| (name, JsonText::trusted(value.get()).without_blanks())).collect())
}

impl Commands {
    /// Cancels every pending timer that matches, if there are no more than expected. Timers that are registered meanwhile are
    /// left alone. An API key runs one bulk cancel at a time.
    pub async fn cancel_matching(&self, selection: &Selection) -> Result<CanceledMany, CommandError> {
        self.check_may_write()?;
        if !(1..=limits::CANCELED_AT_ONCE_MAX).contains(&selection.expected_max) {
            return Err(Invalid::new("expected_max", format!("must lie between 1 and {}", limits::CANCELED_AT_ONCE_MAX)).into());
        }
        let _search = self.searches.begin(&self.caller).ok_or(CommandError::Searching)?;
        let found = self.select(selection).await?;
        if found.len() > selection.expected_max {
            return Err(CommandError::TooMany { expected_max: selection.expected_max });
        }
        let mut canceled = 0;
        for (number, batch) in found.chunks(PAGE_TIMERS).enumerate() {
            let done = self.cancel_batch(batch, number > 0).await?;
            metrics::counter!("timer_canceled_total").increment(done as u64);
            canceled += done;
        }
        Ok(CanceledMany { matched: found.len(), canceled })
    }

    /// The ids that match. The search stops at one more than expected.
    async fn select(&self, selection: &Selection) -> Result<Vec<TimerId>, CommandError> {
        let filter = self.narrowed(&selection.filter)?;
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = call::reading(self.stores.timers.matching(&filter, after, PAGE_TIMERS)).await?;
            let is_last = page.len() < PAGE_TIMERS;
            after = page.last().copied();
            if selection.metadata.0.is_empty() {
                found.extend(page);
            } else {
                self.select_by_metadata(page, selection, &mut found).await?;
            }
            if is_last || found.len() > selection.expected_max {
                return Ok(found);
            }
        }
    }

    /// Adds those of `ids` whose metadata has the wanted members, until there are more than expected. Metadata can be large,
    /// and comparing it takes time: it is read in parts, and compared outside of the threads that serve requests.
    async fn select_by_metadata(
        &self,
        mut ids: Vec<TimerId>,
        selection: &Selection,
        found: &mut Vec<TimerId>,
    ) -> Result<(), CommandError> {
        while !ids.is_empty() && found.len() <= selection.expected_max {
            let metadata = call::reading(self.stores.timers.metadata(&ids, METADATA_BYTES_MAX)).await?;
            if metadata.is_empty() {
                return Err(StoreError::Corrupt("no metadata was read".into()).into());
            }
            let rest = ids.split_off(metadata.len().min(ids.len()));
            found.extend(self.compare(ids, metadata, selection.metadata.clone()).await?);
            ids = rest;
        }
        Ok(())
    }

    async fn compare(
        &self,
        ids: Vec<TimerId>,
        metadata: Vec<Option<JsonText>>,
        wanted: Members,
    ) -> Result<Vec<TimerId>, CommandError> {
        let _comparing = self.searches.comparing().await;
        let compared = tokio::task::spawn_blocking(move || {
            let fits = |(id, metadata): (TimerId, Option<JsonText>)| wanted.are_in(metadata.as_ref()).then_some(id);
            ids.into_iter().zip(metadata).filter_map(fits).collect()
        });
        compared.await.map_err(|error| StoreError::Unavailable(Cause::of(error)).into())
    }

    /// `is_partial` means that earlier batches were canceled, so that no error may claim that nothing was changed.
    pub(crate) async fn cancel_batch(&self, ids: &[TimerId], is_partial: bool) -> Result<usize, CommandError> {
        let mut rounds = 1;
        loop {
            match call::writing(self.stores.timers.cancel_all(ids, self.clock.now())).await {
                Ok(canceled) => return Ok(canceled.into_iter().filter(|canceled| *canceled).count()),
                Err(StoreError::Unknown(_)) if rounds < ROUNDS_MAX => rounds += 1,
                Err(error) if is_partial || rounds > 1 => return Err(CommandError::Unknown(error)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
