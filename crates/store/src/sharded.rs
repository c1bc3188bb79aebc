/// A store that keeps its timers in shards.
pub trait Sharded: Send + Sync {
    /// How many shards there are: fixed when the database was set up.
    fn shards(&self) -> u16;
}
