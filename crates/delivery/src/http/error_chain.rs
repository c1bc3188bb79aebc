//! What stands behind an error of the network.

use std::{error::Error, io};

/// The first error of this type behind `error`, itself included.
pub(super) fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
        .find_map(|error| error.downcast_ref())
}

/// What an I/O error wraps, down to the one that knows the reason. (`source` skips what an I/O error holds.)
pub(super) fn innermost(error: &io::Error) -> &(dyn Error + 'static) {
    match error.get_ref() {
        Some(inner) => match inner.downcast_ref::<io::Error>() {
            Some(error) => innermost(error),
            None => inner,
        },
        None => error,
    }
}
