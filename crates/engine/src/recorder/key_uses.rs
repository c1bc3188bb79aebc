//! When keys were last used. A minute in which one was used is forgotten after a day, like every other; so that it stays known, it is noted
//! again in a later minute before that.

use std::{cmp::Reverse, collections::BTreeMap};

use domain::Timestamp;
use store::NodeDigest;

/// How old a note may become before it is made again: half of the time for which it is kept.
const FRESH_MINUTES: i64 = 12 * 60;
/// How many keys are noted again; beyond, those that were used last.
const CARRIED_MAX: usize = 10_000;

/// The last uses, by key and in microseconds, that no node has noted for half a day.
pub(super) fn fading(written: &[NodeDigest], now: Timestamp) -> BTreeMap<String, i64> {
    // When each was used, and the latest minute that tells it.
    let mut known: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for NodeDigest { minute, digest, .. } in written {
        for (key, at) in &digest.keys_used {
            let (used, noted) = known.entry(key).or_insert((*at, *minute));
            (*used, *noted) = ((*used).max(*at), (*noted).max(*minute));
        }
    }
    known.retain(|_, (_, noted)| *noted < now.minute() - FRESH_MINUTES);
    let mut fading: Vec<_> = known.into_iter().map(|(key, (used, _))| (used, key)).collect();
    fading.sort_unstable_by_key(|one| Reverse(*one));
    fading.into_iter().take(CARRIED_MAX).map(|(used, key)| (key.to_owned(), used)).collect()
}
