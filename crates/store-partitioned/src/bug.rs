/// A bug that tests plant in the store, to prove that they would find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Claims are handed out without a look at the epoch of their shard.
    VerificationSkipped,
    /// What must not be handed out stays claimed by a node that knows nothing of it, instead of being taken back to where the new owner
    /// finds it.
    LeftBehind,
    /// What is taken back is not told to the new owner, whose cursor may have passed it.
    TakenBackSilently,
    /// The epoch is read from a replica that may be out of date.
    StaleEpoch,
}
