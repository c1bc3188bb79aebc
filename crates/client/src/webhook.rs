//! For receivers: whether a call comes from the service, and what it says. Signatures are those of Standard Webhooks.

use std::{fmt, time::Duration};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::Sha256;

use crate::Instant;

/// How old or how far ahead a call may be, unless another tolerance is wanted.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);
const PREFIX: &str = "whsec_";

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
    #[error("a secret must be whsec_ and then base64")]
    Secret,
    #[error("the header {0} is missing")]
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
pub struct Call {
    /// The idempotency key: the same for every attempt of one due time.
    pub webhook_id: String,
    pub timer_id: Option<String>,
    pub namespace: Option<String>,
    pub attempt: Option<u32>,
    pub scheduled_at: Option<Instant>,
    pub correlation_id: Option<String>,
    /// W3C Trace Context.
    pub traceparent: Option<String>,
}

impl Secret {
    pub fn parse(text: &str) -> Result<Self, Doubt> {
        let bytes = text.trim().strip_prefix(PREFIX).and_then(|key| BASE64.decode(key).ok()).filter(|bytes| !bytes.is_empty());
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

/// Verifies the signature of a call with any of the secrets, in constant time, and that it is no older than `tolerance` at `now`. `body` must
/// be the bytes as they arrived.
pub fn verify(headers: &HeaderMap, body: &[u8], secrets: &[Secret], tolerance: Duration, now: Instant) -> Result<Call, Doubt> {
    let webhook_id = text(headers, "webhook-id").ok_or(Doubt::Missing("webhook-id"))?;
    let timestamp = text(headers, "webhook-timestamp").ok_or(Doubt::Missing("webhook-timestamp"))?;
    let signatures = text(headers, "webhook-signature").ok_or(Doubt::Missing("webhook-signature"))?;
    let seconds: i64 = timestamp.parse().map_err(|_| Doubt::Timestamp)?;
    if now.timestamp().abs_diff(seconds) > tolerance.as_secs() {
        return Err(Doubt::Old);
    }
    let found = signatures.split(' ').filter_map(|signature| BASE64.decode(signature.strip_prefix("v1,")?).ok());
    let found: Vec<_> = found.collect();
    let is_right = |secret: &Secret| {
        let mac = secret.mac(webhook_id, timestamp, body);
        found.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    };
    if !secrets.iter().any(is_right) {
        return Err(Doubt::Signature);
    }
    let scheduled_at = text(headers, "x-timer-scheduled-at").and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    Ok(Call {
        webhook_id: webhook_id.to_owned(),
        timer_id: text(headers, "x-timer-id").map(str::to_owned),
        namespace: text(headers, "x-timer-namespace").map(str::to_owned),
        attempt: text(headers, "x-timer-attempt").and_then(|attempt| attempt.parse().ok()),
        scheduled_at: scheduled_at.map(|at| at.to_utc()),
        correlation_id: text(headers, "x-correlation-id").map(str::to_owned),
        traceparent: text(headers, "traceparent").map(str::to_owned),
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Answers of the `timer` protocol: it worked; it worked, or not, and is to be called again; it did not work.
pub fn done() -> String {
    r#"{"ok":true}"#.to_owned()
}

pub fn again(ok: bool, at: Instant) -> String {
    format!(r#"{{"ok":{ok},"nextExecuteAt":"{}"}}"#, crate::new_timer::instant(at))
}

pub fn failed() -> String {
    r#"{"ok":false}"#.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT: i64 = 1_614_265_330;

    fn headers(signature: &str) -> HeaderMap {
        let pairs =
            [("webhook-id", ID), ("webhook-timestamp", "1614265330"), ("webhook-signature", signature), ("x-timer-attempt", "2")];
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn verified(signature: &str, body: &[u8], late: i64) -> Result<Option<u32>, Doubt> {
        let secrets = ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", SECRET].map(|text| Secret::parse(text).unwrap());
        let now = chrono::DateTime::from_timestamp(AT + late, 0).unwrap();
        verify(&headers(signature), body, &secrets, TOLERANCE, now).map(|call| call.attempt)
    }

    #[test]
    fn calls_are_verified_as_the_specification_says() {
        let signature = Secret::parse(SECRET).unwrap().sign(ID, AT, BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(verified(&signature, BODY, 0), Ok(Some(2)));
        assert_eq!(verified(&format!("v1,AAAA v0,x {signature}"), BODY, 300), Ok(Some(2)));
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

    #[test]
    fn answers_of_the_timer_protocol_are_json() {
        let at = chrono::DateTime::from_timestamp(AT, 0).unwrap();
        assert_eq!(again(false, at), r#"{"ok":false,"nextExecuteAt":"2021-02-25T15:02:10.000000Z"}"#);
        assert_eq!((done().as_str(), failed().as_str()), (r#"{"ok":true}"#, r#"{"ok":false}"#));
    }
}
