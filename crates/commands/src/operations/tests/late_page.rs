//! A store that does not answer the first page of an operation, and commits it later, as one does whose writer is held up.

use std::{
    future::{Future, pending},
    sync::{Arc, Mutex},
};

use domain::Timestamp;
use store::{BulkAction, BulkChange, BulkItem, BulkStore, Decorator, Operation, Progress, StoreResult};
use store_testing::{Faulty, Model};

pub struct LatePage {
    inner: Arc<Faulty<Model>>,
    /// The page is committed just before the next such call.
    before: Operation,
    page: Mutex<Page>,
}

enum Page {
    Awaited,
    HeldUp { action: BulkAction, items: Vec<BulkItem>, progress: Progress, now: Timestamp },
    Committed,
}

impl LatePage {
    pub fn committed_before(before: Operation, inner: Arc<Faulty<Model>>) -> Self {
        Self { inner, before, page: Mutex::new(Page::Awaited) }
    }

    /// Commits the page, if that has not happened yet.
    pub async fn commit_late_page(&self) {
        let page = {
            let mut page = self.page.lock().unwrap();
            if matches!(*page, Page::Awaited) {
                return;
            }
            std::mem::replace(&mut *page, Page::Committed)
        };
        if let Page::HeldUp { action, items, progress, now } = page {
            BulkStore::change_all(&*self.inner, &action, &items, Some(&progress), now).await.unwrap();
        }
    }
}

impl Decorator for LatePage {
    type Inner = Faulty<Model>;

    fn inner(&self) -> &Faulty<Model> {
        &self.inner
    }

    async fn around<T: Send>(&self, operation: Operation, work: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        if operation == self.before {
            self.commit_late_page().await;
        }
        work.await
    }

    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        let is_first = {
            let mut page = self.page.lock().unwrap();
            let is_first = matches!(*page, Page::Awaited);
            if let (true, Some(progress)) = (is_first, progress) {
                *page = Page::HeldUp { action: action.clone(), items: items.to_vec(), progress: *progress, now };
            }
            is_first
        };
        if is_first {
            return pending().await;
        }
        self.around(Operation::ChangeAll, BulkStore::change_all(&*self.inner, action, items, progress, now)).await
    }
}
