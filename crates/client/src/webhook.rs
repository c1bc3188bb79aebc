//! For receivers: whether a call comes from the service, what it says, and what it is answered. Signatures are those of Standard
//! Webhooks.

mod answer;
mod receiver;

use std::{fmt, time::Duration};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::Sha256;

pub use self::{
    answer::{Answer, again, done, failed, retry_after},
    receiver::Receiver,
};
use crate::Instant;

/// How old or how far ahead a call may be, unless another tolerance is wanted.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);
const PREFIX: &str = "whsec_";
const SECRET_BYTES_MIN: usize = 24;
/// Enough for thirty thousand years.
const TIMESTAMP_DIGITS_MAX: usize = 12;

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// A secret of the form `whsec_…`. It is never shown.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a call is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    #[error("a secret must be whsec_ and then at least 24 bytes in base64")]
    Secret,
    #[error("the header {0} is missing or malformed")]
    Missing(&'static str),
    #[error("webhook-timestamp is not a number of seconds")]
    Timestamp,
    #[error("the call is older than is tolerated, or comes from the future")]
    Old,
    #[error("no signature is right")]
    Signature,
}

/// What a call says, beside its body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The idempotency key: the same for every attempt of one due time.
    pub id: String,
    pub timer_id: String,
    pub namespace: String,
    pub attempt: u32,
    pub scheduled_at: Instant,
    /// To the second.
    pub sent_at: Instant,
    pub correlation_id: Option<String>,
    /// W3C Trace Context.
    pub traceparent: Option<String>,
}

impl Call {
    /// What the headers of a verified call say.
    pub fn read(headers: &HeaderMap) -> Result<Self, Doubt> {
        let required = |name: &'static str| text(headers, name).ok_or(Doubt::Missing(name));
        let scheduled_at = chrono::DateTime::parse_from_rfc3339(required("x-timer-scheduled-at")?);
        let sent_at = chrono::DateTime::from_timestamp(seconds(required("webhook-timestamp")?)?, 0);
        Ok(Self {
            id: required("webhook-id")?.to_owned(),
            timer_id: required("x-timer-id")?.to_owned(),
            namespace: required("x-timer-namespace")?.to_owned(),
            attempt: required("x-timer-attempt")?.parse().map_err(|_| Doubt::Missing("x-timer-attempt"))?,
            scheduled_at: scheduled_at.map_err(|_| Doubt::Missing("x-timer-scheduled-at"))?.to_utc(),
            sent_at: sent_at.ok_or(Doubt::Timestamp)?,
            correlation_id: text(headers, "x-correlation-id").map(str::to_owned),
            traceparent: text(headers, "traceparent").map(str::to_owned),
        })
    }

    /// How long after its due time the call was sent.
    pub fn lateness(&self) -> Duration {
        (self.sent_at - self.scheduled_at).to_std().unwrap_or_default()
    }
}

impl Secret {
    pub fn parse(text: &str) -> Result<Self, Doubt> {
        let bytes = text
            .trim()
            .strip_prefix(PREFIX)
            .and_then(|key| BASE64.decode(key).ok())
            .filter(|bytes| bytes.len() >= SECRET_BYTES_MIN);
        bytes.and_then(|bytes| Hmac::new_from_slice(&bytes).ok()).map(Self).ok_or(Doubt::Secret)
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, webhook_id: &str, timestamp: i64, body: &[u8]) -> String {
        let mac = self.mac(webhook_id, &timestamp.to_string(), body);
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }

    fn mac(&self, webhook_id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in [webhook_id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

/// Verifies a call, and reads what it says. `body` must be the bytes as they arrived.
pub fn verify(headers: &HeaderMap, body: &[u8], secrets: &[Secret], tolerance: Duration, now: Instant) -> Result<Call, Doubt> {
    check(headers, body, secrets, tolerance, now)?;
    Call::read(headers)
}

/// Verifies a signature with any of the secrets, in constant time, and that it is no older than `tolerance` at `now`.
pub fn check(headers: &HeaderMap, body: &[u8], secrets: &[Secret], tolerance: Duration, now: Instant) -> Result<(), Doubt> {
    let webhook_id = text(headers, "webhook-id").ok_or(Doubt::Missing("webhook-id"))?;
    let timestamp = text(headers, "webhook-timestamp").ok_or(Doubt::Missing("webhook-timestamp"))?;
    let signatures = text(headers, "webhook-signature").ok_or(Doubt::Missing("webhook-signature"))?;
    if now.timestamp().abs_diff(seconds(timestamp)?) > tolerance.as_secs() {
        return Err(Doubt::Old);
    }
    let found = signatures.split(' ').filter_map(|signature| BASE64.decode(signature.strip_prefix("v1,")?).ok());
    let found: Vec<_> = found.collect();
    let is_right = |secret: &Secret| {
        let mac = secret.mac(webhook_id, timestamp, body);
        found.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    };
    if secrets.iter().any(is_right) { Ok(()) } else { Err(Doubt::Signature) }
}

/// Digits and nothing else.
fn seconds(timestamp: &str) -> Result<i64, Doubt> {
    let is_number = timestamp.len() <= TIMESTAMP_DIGITS_MAX && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { timestamp.parse().map_err(|_| Doubt::Timestamp) } else { Err(Doubt::Timestamp) }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT: i64 = 1_614_265_330;

    fn headers(signature: &str) -> HeaderMap {
        let pairs = [
            ("webhook-id", ID),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
            ("x-timer-id", "01890a5d-ac96-774b-bcce-b302099a8057"),
            ("x-timer-namespace", "shop"),
            ("x-timer-scheduled-at", "2021-02-25T15:02:09.5Z"),
            ("x-timer-attempt", "2"),
        ];
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn verified(signature: &str, body: &[u8], late: i64) -> Result<u32, Doubt> {
        let secrets = ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", SECRET].map(|text| Secret::parse(text).unwrap());
        let now = chrono::DateTime::from_timestamp(AT + late, 0).unwrap();
        verify(&headers(signature), body, &secrets, TOLERANCE, now).map(|call| call.attempt)
    }

    #[test]
    fn calls_are_verified_as_the_specification_says() {
        let signature = Secret::parse(SECRET).unwrap().sign(ID, AT, BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(verified(&signature, BODY, 0), Ok(2));
        assert_eq!(verified(&format!("v1,AAAA v0,x {signature}"), BODY, 300), Ok(2));
        assert_eq!(verified(&signature, b"{}", 0), Err(Doubt::Signature));
        assert_eq!(verified("", BODY, 0), Err(Doubt::Signature));
        for late in [301, -301] {
            assert_eq!(verified(&signature, BODY, late), Err(Doubt::Old));
        }
        let now = chrono::DateTime::from_timestamp(AT, 0).unwrap();
        assert_eq!(verify(&HeaderMap::new(), BODY, &[], TOLERANCE, now), Err(Doubt::Missing("webhook-id")));
        for text in ["", "whsec_", "whsec_%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(Secret::parse(text).err(), Some(Doubt::Secret), "{text}");
        }
    }

    #[tokio::test]
    async fn a_receiver_takes_a_call_once_and_refuses_what_is_not_signed() {
        let secret = Secret::parse(SECRET).unwrap();
        let seconds = crate::calls::now().timestamp();
        let seen = std::sync::Mutex::new(std::collections::HashSet::new());
        let receiver = Receiver::new([secret.clone()]).only_if(move |call| seen.lock().unwrap().insert(call.id.clone()));
        let request = |body: &'static [u8]| {
            let mut request = http::Request::new(http_body_util::Full::new(bytes::Bytes::from_static(body)));
            *request.headers_mut() = headers(&secret.sign(ID, seconds, BODY));
            request.headers_mut().insert("webhook-timestamp", seconds.into());
            request
        };
        let (call, body) = receiver.take(request(BODY)).await.unwrap();
        assert_eq!((call.namespace.as_str(), body.as_ref()), ("shop", BODY));
        assert_eq!(receiver.take(request(BODY)).await.unwrap_err().status(), 200);
        assert_eq!(receiver.take(request(b"{}")).await.unwrap_err().status(), 401);
    }
}
