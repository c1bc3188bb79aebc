//! What rows hold, as JSON.

use domain::Cause;
use serde::{Deserialize, Serialize};
use store::{StoreError, Unreadable};

pub fn corrupt(unreadable: Unreadable) -> StoreError {
    StoreError::Corrupt(Cause::of(unreadable))
}

pub fn from_json<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(bytes).map_err(|error| Unreadable(format!("a stored row cannot be read: {error}")))
}

pub fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    // Neither keys nor values can be refused: all of them are numbers and texts.
    serde_json::to_vec(value).unwrap_or_default()
}
