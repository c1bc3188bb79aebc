use bytes::Bytes;
use domain::JsonText;

/// The payload as it lies in memory: a large one is not copied to be sent. None is sent as nothing at all.
pub(crate) fn bytes(payload: Option<&JsonText>) -> Bytes {
    struct Shared(JsonText);

    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }

    payload.map(|payload| Bytes::from_owner(Shared(payload.clone()))).unwrap_or_default()
}
