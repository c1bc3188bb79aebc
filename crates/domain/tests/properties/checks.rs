//! What must hold for any text that a client may send. The fuzz targets (`fuzz/`) call these, too.

use domain::{Callback, Span};

/// A duration that is read is written so that it reads back as itself.
pub fn duration(text: &str) {
    if let Ok(span) = Span::parse("delay", text) {
        assert_eq!(Span::parse("delay", &span.to_string()), Ok(span), "{text:?} is written as {span}");
    }
}

/// A callback that is read is written so that it reads back as itself, from a client and from a store.
pub fn callback(text: &str) {
    if let Ok(callback) = Callback::from_json(text) {
        let written = callback.to_json();
        assert_eq!(Callback::from_json(&written).as_ref(), Ok(&callback), "{text:?} is written as {written}");
        assert_eq!(Callback::from_stored(&written).as_ref(), Ok(&callback), "{text:?} is written as {written}");
    }
}
