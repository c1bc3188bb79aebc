use std::{future::Future, time::Duration};

use async_trait::async_trait;
use domain::{AccessKey, AccessKeyId, Attempt, Group, Missed, Namespace, NewTimer, Shard, Span, Timer, TimerId, Timestamp};

use crate::{
    BulkAction, BulkChange, BulkItem, BulkOperation, BulkStore, Changed, Claim, Claimed, Cluster, Count, Created, DueCounts,
    DueEntry, DueQuery, DueStore, Epoch, EventPage, EventStore, Filter, GroupCount, HealthStore, HeartbeatReply, KeyStore,
    ListQuery, Member, MembershipStore, NamespaceCounts, NodeDigest, NodeId, NodeReceiver, NodeStats, Operation, OperationId,
    OperationState, Page, Progress, Promise, Settlement, ShardCursor, ShardLease, Sharded, StatsStore, Store, StoreResult,
    TimerStore, Watermark, calls::for_each_call,
};

macro_rules! decorators {
    ($($part:ident { $($call:ident($($argument:ident: $kind:ty),*) -> $answer:ty, $operation:ident, $effect:ident;)* })*) => {
        /// A store that stands before another one and does something beside each call: it is a [`Store`] itself.
        ///
        /// What it does to every call stands in [`around`](Decorator::around). A call that needs more than that is
        /// overridden by name; all others reach the inner store through `around`.
        pub trait Decorator: Send + Sync {
            type Inner: Store + ?Sized;

            fn inner(&self) -> &Self::Inner;

            /// Carries out one call. `work` is that call to the inner store, and does nothing until it is awaited.
            fn around<T: Send>(
                &self,
                operation: Operation,
                work: impl Future<Output = StoreResult<T>> + Send,
            ) -> impl Future<Output = StoreResult<T>> + Send {
                let _ = operation;
                work
            }

            $($(
                fn $call(&self $(, $argument: $kind)*) -> impl Future<Output = StoreResult<$answer>> + Send {
                    async move { self.around(Operation::$operation, self.inner().$call($($argument),*)).await }
                }
            )*)*
        }

        impl<D: Decorator> Sharded for D {
            fn shards(&self) -> u16 {
                self.inner().shards()
            }

            fn shard_for_new(&self) -> Option<Shard> {
                self.inner().shard_for_new()
            }

            fn has_one_writer(&self) -> bool {
                self.inner().has_one_writer()
            }

            fn lacks(&self) -> &'static [Promise] {
                self.inner().lacks()
            }
        }

        $(
            #[async_trait]
            impl<D: Decorator> $part for D {
                $(
                    async fn $call(&self $(, $argument: $kind)*) -> StoreResult<$answer> {
                        Decorator::$call(self $(, $argument)*).await
                    }
                )*
            }
        )*
    };
}

for_each_call!(decorators);
