use async_trait::async_trait;
use store::StoreResult;

use crate::{Columns, Consistency, Limits, Outcome, Partition, Range, Row, Write};

/// What a partitioned database must do, so that the store can be written once for all of them.
///
/// ```text
///   partition "timers-17"
///   ├─ rows         key ──▶ version, head, body, log        one row is written atomically, under a condition on its version
///   └─ per index    position ──▶ key                        ordered by bytes, written atomically with the row
/// ```
///
/// Only two things are atomic: one row, and the row together with its positions in the indexes of its partition. Nothing is
/// promised across rows, not even inside one call. Where a database can write several rows of a partition atomically, a driver uses that
/// to save round trips, and the store does not rely on it.
///
/// Databases of this kind have no clock that is one for all clients, so there is none here.
///
/// **Errors** are those of the store. A read that fails is [`Unavailable`](store::StoreError::Unavailable) or
/// [`Corrupt`](store::StoreError::Corrupt). A write says whether nothing was done or whether that is unknown; see
/// [`write`](Database::write).
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// What it is called in messages: `cassandra`.
    fn name(&self) -> &'static str;

    /// How much it takes at once.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Creates tables and indexes that are missing. Harmless when it is repeated, and when many processes call it at once.
    async fn set_up(&self) -> StoreResult<()>;

    /// The rows with these keys, in the order of `keys`; `None` where there is none.
    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>>;

    /// The rows of a range, in its order, at most `range.limit` of them: by their keys, or by their positions in an index. Fewer than
    /// `range.limit` are given only where the range has ended.
    ///
    /// With [`Columns::NONE`] only `key` and `position` of the rows are filled: an index of its own answers that without the rows.
    /// Otherwise a row may be newer than the position under which it was found, and one that is gone since is left out: a driver that
    /// loses some in this way reads on until the page is full or the range has ended.
    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>>;

    /// Writes rows of one partition, **each by itself**: one whose condition fails does not hinder the remaining ones. Answers in the order
    /// of `writes`, in which each key appears at most once. There may be more of them than [`Limits::rows_per_write`]: the driver splits
    /// them.
    ///
    /// **A condition names a version that this very row had**, or one that no row has, and never that of another row. So a driver may look for
    /// many rows by their keys and by the versions of all conditions, without saying which version belongs to which key.
    ///
    /// A row whose write is [`Outcome::Applied`] is durable, and every linearizable or committed read that begins later sees it. An error for
    /// the whole call means the same for every row of it.
    ///
    /// **A write whose outcome is unknown may still be applied later**, but only while its condition holds: once any other write has
    /// changed the row, it never is. The versions are unique among all writes of all processes, so that a driver may read back which of
    /// its writes were applied.
    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>>;

    /// Asks the database to answer, nothing more.
    async fn ping(&self) -> StoreResult<()>;
}
