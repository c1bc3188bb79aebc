use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::{Operation, StoreError, StoreResult};

/// Whether the store takes writes, as far as the last call showed.
#[derive(Debug, Default)]
pub struct Writable {
    /// Looked at by every call, so that those of a store that is well take no lock.
    is_refused: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Writable {
    /// Why the store cannot be written, until a write has shown that it can be.
    pub fn refusal(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note<T>(&self, operation: Operation, answer: &StoreResult<T>) {
        match answer {
            Err(StoreError::Full(cause)) => self.set(Some(cause.to_string())),
            Ok(_) if proves_writing(operation) && self.is_refused.load(Ordering::Relaxed) => self.set(None),
            _ => {}
        }
    }

    fn set(&self, why: Option<String>) {
        self.is_refused.store(why.is_some(), Ordering::Relaxed);
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// The other writes may find nothing to change, and then need no space; and a heartbeat overwrites what is there.
const fn proves_writing(operation: Operation) -> bool {
    matches!(operation, Operation::Create | Operation::Settle | Operation::Probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_refused_from_a_write_that_finds_no_space_to_one_that_does() {
        let writable = Writable::default();
        let full = || Err::<(), _>(StoreError::Full("no space".into()));
        let away = || Err::<(), _>(StoreError::Unavailable("away".into()));
        let refused = Some("no space");
        for (operation, answer, refusal) in [
            (Operation::Create, Ok(()), None),
            (Operation::Create, full(), refused),
            (Operation::Ping, Ok(()), refused),
            (Operation::Heartbeat, Ok(()), refused),
            (Operation::Claim, Ok(()), refused),
            (Operation::Create, away(), refused),
            (Operation::Probe, full(), refused),
            (Operation::Probe, Ok(()), None),
            (Operation::Claim, full(), refused),
            (Operation::Settle, Ok(()), None),
        ] {
            writable.note(operation, &answer);
            assert_eq!(writable.refusal().as_deref(), refusal, "{operation:?} {answer:?}");
        }
    }
}
