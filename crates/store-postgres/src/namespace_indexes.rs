//! The indexes by which the timers of a namespace are listed where several namespaces are in use.
//!
//! In most databases every timer is in the default namespace. There such indexes would know what those of all timers know, and every
//! create would have to write them. So they are built, beside all other work, when the first timer of another namespace comes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use domain::Namespace;
use sqlx::{PgConnection, postgres::PgConnectOptions};
use store::Sort;

use crate::{
    failure::cause,
    indexes::{BY_DUE_TIME, OF_DEFAULT, build_later, is_valid},
};

#[derive(Debug)]
pub struct NamespaceIndexes {
    options: PgConnectOptions,
    are_wanted: AtomicBool,
    has_default: AtomicBool,
    has_due_time: AtomicBool,
}

impl NamespaceIndexes {
    pub fn of(options: &PgConnectOptions) -> Self {
        let unknown = || AtomicBool::new(false);
        Self { options: options.clone(), are_wanted: unknown(), has_default: unknown(), has_due_time: unknown() }
    }

    /// Whether an index has the timers of this namespace in this order.
    pub fn know(&self, namespace: &Namespace, sort: Sort) -> bool {
        match sort {
            // All others are in an index that is always there.
            Sort::CreatedAt => namespace.as_str() != Namespace::DEFAULT || self.has_default.load(Ordering::Relaxed),
            Sort::ExecuteAt => self.has_due_time.load(Ordering::Relaxed),
        }
    }

    /// Looks for the one that lists in this order need: another node may have built it.
    pub async fn look(&self, session: &mut PgConnection, sort: Sort) -> Result<(), sqlx::Error> {
        let ((name, _), is_there) = match sort {
            Sort::CreatedAt => (OF_DEFAULT, &self.has_default),
            Sort::ExecuteAt => (BY_DUE_TIME, &self.has_due_time),
        };
        is_there.store(is_valid(session, name).await?, Ordering::Relaxed);
        Ok(())
    }

    /// Builds those that are missing, in the background. What fails is tried again by the next process; what was built is found by the
    /// next list.
    pub fn want(self: &Arc<Self>) {
        if self.are_wanted.swap(true, Ordering::Relaxed) {
            return;
        }
        let options = self.options.clone();
        tokio::spawn(async move {
            if let Err(error) = build_later(&options, &[OF_DEFAULT, BY_DUE_TIME]).await {
                tracing::warn!(error = %cause(error), "an index could not be built: lists of a namespace are slow until a later start builds it");
            }
        });
    }
}
