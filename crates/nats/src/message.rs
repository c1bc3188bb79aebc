use async_nats::{HeaderMap, HeaderName, HeaderValue, Subject, header::NATS_MESSAGE_ID};
use bytes::Bytes;

use crate::PublishError;

const HEADERS_FRAME_BYTES: usize = "NATS/1.0\r\n\r\n".len();
const HEADER_FRAME_BYTES: usize = ": \r\n".len();

/// A message to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub subject: String,
    /// Names keep their case, which is significant in NATS.
    pub headers: Vec<(String, String)>,
    pub payload: Bytes,
}

/// A message as the client library takes it.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub subject: Subject,
    pub headers: HeaderMap,
    pub payload: Bytes,
}

impl Outgoing {
    /// The size on the wire, as the server counts it against its limit.
    pub(crate) fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + HEADER_FRAME_BYTES).sum();
        let frame = if self.headers.is_empty() { 0 } else { HEADERS_FRAME_BYTES };
        frame + headers + self.payload.len()
    }

    /// The same message with the id by which a stream detects duplicates.
    pub(crate) fn with_message_id(mut self, id: &str) -> Self {
        self.headers.push((NATS_MESSAGE_ID.to_string(), id.to_owned()));
        self
    }

    pub(crate) fn encode(self, bytes_max: usize) -> Result<Encoded, PublishError> {
        let bytes = self.bytes();
        if bytes > bytes_max {
            return Err(PublishError::TooLarge { bytes, max: bytes_max });
        }
        if self.subject.is_empty() || self.subject.contains([' ', '\t', '\r', '\n']) {
            return Err(PublishError::Malformed("its subject is empty or has blanks"));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            let name =
                HeaderName::try_from(name).map_err(|_| PublishError::Malformed("a header's name has forbidden characters"))?;
            let value: HeaderValue = value.parse().map_err(|_| PublishError::Malformed("a header's value has a line break"))?;
            headers.append(name, value);
        }
        Ok(Encoded { subject: self.subject.into(), headers, payload: self.payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, headers: &[(&str, &str)], payload: &'static str) -> Outgoing {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Outgoing { subject: subject.to_owned(), headers, payload: Bytes::from_static(payload.as_bytes()) }
    }

    #[test]
    fn a_message_is_measured_with_its_headers() {
        assert_eq!(message("a", &[], "12345").bytes(), 5);
        assert_eq!(message("a", &[("X-A", "b")], "12345").bytes(), "NATS/1.0\r\nX-A: b\r\n\r\n12345".len());
        let exact = message("a", &[("X-A", "b")], "12345");
        assert!(exact.clone().encode(exact.bytes()).is_ok());
        let refusal = exact.clone().encode(exact.bytes() - 1).unwrap_err();
        assert_eq!(refusal, PublishError::TooLarge { bytes: 25, max: 24 });
    }

    #[test]
    fn what_would_break_the_protocol_is_not_written() {
        for bad in [
            message("", &[], ""),
            message("a b", &[], ""),
            message("a\r\nPUB b 0", &[], ""),
            message("a", &[("x:y", "z")], ""),
            message("a", &[("é", "z")], ""),
            message("a", &[("x", "y\r\nz: 1")], ""),
        ] {
            assert!(matches!(bad.clone().encode(usize::MAX), Err(PublishError::Malformed(_))), "{bad:?}");
        }
    }
}
