use std::collections::HashMap;

use domain::{AccessKeyId, Span, Timestamp};

use crate::{CommandError, Commands, call};

/// How long statistics are kept. An earlier use is noted again before it is forgotten, so that it is in them, too.
const KEPT: Span = Span::from_secs(24 * 60 * 60);

impl Commands {
    /// When each key was last used on any node, to the minute. One of which no use is recorded is left out.
    pub async fn key_uses(&self) -> Result<HashMap<AccessKeyId, Timestamp>, CommandError> {
        self.check_administrator()?;
        let now = self.clock.now();
        let written = call::reading(self.stores.stats.digests(&[], now.saturating_sub(KEPT).minute(), now.minute() + 1)).await?;
        let mut uses = HashMap::new();
        for digest in written.iter().chain(&(self.stats.live.digests)()) {
            for (key, micros) in &digest.digest.keys_used {
                let Ok(id) = AccessKeyId::parse(key) else { continue };
                let at = Timestamp::from_micros(*micros);
                let latest = uses.entry(id).or_insert(at);
                *latest = at.max(*latest);
            }
        }
        Ok(uses)
    }
}
