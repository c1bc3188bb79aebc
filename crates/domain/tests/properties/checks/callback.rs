use domain::Callback;

/// A callback that is read is written so that it reads back as itself, from a client and from a store.
pub fn check(text: &str) {
    if let Ok(callback) = Callback::from_json(text) {
        let written = callback.to_json();
        assert_eq!(Callback::from_json(&written).as_ref(), Ok(&callback), "{text:?} is written as {written}");
        for stored in [callback.to_stored(), written] {
            assert_eq!(Callback::from_stored(&stored).as_ref(), Ok(&callback), "{text:?} is stored as {stored}");
        }
    }
}
