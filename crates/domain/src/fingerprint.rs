use sha2::{Digest, Sha256};

use crate::{Definition, JsonText, json::without_blanks};

/// A short stand-in for everything a request said except when: equal for requests that mean the same.
///
/// Blanks between JSON tokens do not count; the order of members does, because receivers get to see it. Only a request with a key can
/// be repeated: without one no two mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    pub fn of(definition: &Definition) -> Self {
        Self::with(definition, &definition.callback.to_json())
    }

    /// The same, for somebody who has written the callback as JSON already.
    pub fn with(definition: &Definition, callback_json: &str) -> Self {
        // Without a key every request is a timer of its own: its id says it all.
        if definition.key.is_none() {
            return Self(definition.id.as_uuid().into_bytes());
        }
        let mut hash = Sha256::new();
        let mut part = |text: Option<&str>| {
            // Lengths keep neighbouring parts apart; no text at all differs from an empty one.
            hash.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
            hash.update(text.unwrap_or_default());
        };
        let Definition { id: _, namespace, key, asked: _, callback: _, metadata, correlation_id, retry_policy, delivery } =
            definition;
        part(Some(namespace.as_str()));
        part(key.as_ref().map(|key| key.as_str()));
        part(Some(&without_blanks(callback_json)));
        part(metadata.as_ref().map(JsonText::without_blanks).as_deref());
        part(correlation_id.as_ref().map(|id| id.as_str()));
        part(retry_policy.as_ref().map(crate::RetryPolicy::to_json).as_deref());
        part(Some(delivery.as_str()));
        let mut short = [0; 16];
        short.copy_from_slice(&hash.finalize()[..16]);
        Self(short)
    }
}
