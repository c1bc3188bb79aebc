//! The index by which timers of the default namespace are listed where others are in use beside it.
//!
//! In most databases every timer is in the default namespace. There such an index would know what the one of all timers knows, and every
//! create would have to write it. So it is built, beside all other work, when the first timer of another namespace comes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sqlx::{PgConnection, postgres::PgConnectOptions};

use crate::{
    failure::cause,
    indexes::{OF_DEFAULT, build_one, is_valid},
};

#[derive(Debug)]
pub struct DefaultIndex {
    options: PgConnectOptions,
    is_wanted: AtomicBool,
    is_there: AtomicBool,
}

impl DefaultIndex {
    pub fn of(options: &PgConnectOptions) -> Self {
        Self { options: options.clone(), is_wanted: AtomicBool::new(false), is_there: AtomicBool::new(false) }
    }

    pub fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Another node may have built it.
    pub async fn look(&self, session: &mut PgConnection) -> Result<(), sqlx::Error> {
        let (name, _) = OF_DEFAULT;
        let is_there = is_valid(session, name).await?;
        self.is_there.store(is_there, Ordering::Relaxed);
        Ok(())
    }

    /// Builds it in the background, if it is missing. What fails is tried again by the next process.
    pub fn want(self: &Arc<Self>) {
        if self.is_wanted.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            match build_one(&this.options, OF_DEFAULT).await {
                Ok(()) => this.is_there.store(true, Ordering::Relaxed),
                Err(error) => {
                    tracing::warn!(error = %cause(error), "an index could not be built: lists of the default namespace are slow until a later start builds it");
                }
            }
        });
    }
}
