use serde::{Deserialize, Serialize};

/// The claim under which a timer is executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub token: i64,
    pub epoch: i64,
    /// How long the lease of the claim is, in microseconds.
    pub lease: i64,
}
