use async_trait::async_trait;
use domain::{Span, Timestamp};

use crate::{BulkAction, BulkChange, BulkItem, BulkOperation, Epoch, OperationId, OperationState, Progress, StoreResult};

/// Changes of many timers at once, and the operations that make them page by page. For `commands`.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait BulkStore: Send + Sync {
    /// Does to each of `items` what [`BulkAction::step`] says, all of it in one commit: at most 1,000 of them, each id once. Says for each what
    /// became of it. A claim that meets the change is before or after it, as with single changes.
    ///
    /// With `progress`, how far its operation has come is written in the same commit, also where there are no items; its counts grow by what
    /// was changed and skipped and cannot be read. `None` when the operation does not run under that epoch any more: then nothing was
    /// changed.
    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>>;

    /// Keeps a new operation, unless `running_max` of the same key are running.
    async fn add_operation(&self, operation: &BulkOperation, running_max: usize) -> StoreResult<bool>;

    async fn operation(&self, id: OperationId) -> StoreResult<Option<BulkOperation>>;

    /// The operations before `before`, the latest first, at most `limit`.
    async fn operations(&self, before: Option<OperationId>, limit: usize) -> StoreResult<Vec<BulkOperation>>;

    /// Takes the running operation that has waited longest, of those that are no other node's: since its lease ran out, or since its
    /// start. It belongs to its taker for the length of `lease` by the database's clock, and its epoch rises: what was sent under the epoch
    /// before changes nothing from then on.
    ///
    /// One that cannot be read holds up no other: it is passed over, or its lease is taken and the call fails as
    /// [`Corrupt`](crate::StoreError::Corrupt), so that the next call takes another.
    async fn take_operation(&self, lease: Span) -> StoreResult<Option<BulkOperation>>;

    /// Ends a running operation, if it runs under `epoch` where one is given. Says whether it did.
    async fn finish_operation(
        &self,
        id: OperationId,
        epoch: Option<Epoch>,
        state: OperationState,
        error: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<bool>;

    /// Removes operations that ended before `before`, at most `limit`. Says how many.
    async fn purge_operations(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;
}
