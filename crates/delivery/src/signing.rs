//! Signatures by the Standard Webhooks specification: HMAC-SHA256 over id, time and body, so that a receiver can tell
//! our calls from those of any other client.

use std::fmt;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use domain::{Invalid, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const SETTING: &str = "SIGNING_SECRET";
const SECRETS_MAX: usize = 2;
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// The setting `SIGNING_SECRET`: one secret, or two while one replaces the other. Both sign then, so that receivers may change over
/// when it suits them.
#[derive(Clone)]
pub struct SigningSecrets(Vec<Hmac<Sha256>>);

impl SigningSecrets {
    /// How every secret begins.
    pub(crate) const PREFIX: &str = "whsec_";

    /// Reads `whsec_…`, or two of them separated by a comma.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let secrets: Vec<_> = text.split(',').map(str::trim).filter(|secret| !secret.is_empty()).collect();
        if secrets.is_empty() || secrets.len() > SECRETS_MAX {
            return Err(Invalid::new(SETTING, "must be one secret, or two separated by a comma"));
        }
        secrets.into_iter().map(parse_secret).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `webhook-signature`: one signature for each secret.
    pub(crate) fn sign(&self, webhook_id: &str, at: Timestamp, body: &[u8]) -> String {
        let seconds = unix_seconds(at).to_string();
        let mut header = String::new();
        for key in &self.0 {
            let mut mac = key.clone();
            for part in [webhook_id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
                mac.update(part);
            }
            header.push_str(if header.is_empty() { "v1," } else { " v1," });
            BASE64.encode_string(mac.finalize().into_bytes(), &mut header);
        }
        header
    }

    /// Whether one of the signatures in the value of `webhook-signature` was made with one of the secrets, for this id, this value of
    /// `webhook-timestamp` and this body. Says nothing of how old the call is.
    pub fn verifies(&self, webhook_id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
        let found = signatures.split(' ').filter_map(|signature| BASE64.decode(signature.strip_prefix("v1,")?).ok());
        let found: Vec<_> = found.collect();
        self.0.iter().any(|key| {
            let mut mac = key.clone();
            for part in [webhook_id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                mac.update(part);
            }
            found.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
        })
    }
}

/// Never repeats the text it refuses: it may be a secret with a slip of the pen.
fn parse_secret(text: &str) -> Result<Hmac<Sha256>, Invalid> {
    let refused = || {
        let rule =
            format!("must be {} and then {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes as base64", SigningSecrets::PREFIX);
        Invalid::new(SETTING, rule)
    };
    let bytes = text.strip_prefix(SigningSecrets::PREFIX).and_then(|key| BASE64.decode(key).ok()).ok_or_else(refused)?;
    if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
        return Err(refused());
    }
    Hmac::new_from_slice(&bytes).map_err(|_| refused())
}

/// The time of an attempt as `webhook-timestamp` writes it.
pub(crate) const fn unix_seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningSecrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const COUNTING: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn sign(secrets: &str, body: &str) -> String {
        let at = Timestamp::from_micros(1_614_265_330_999_999);
        SigningSecrets::parse(secrets).unwrap().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, body.as_bytes())
    }

    #[test]
    fn signatures_are_those_of_the_specification() {
        assert_eq!(sign(PUBLISHED, r#"{"test": 2432232314}"#), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(sign(COUNTING, ""), "v1,GsnVozukDiVmbnjDPsr6Y6lFW7x/ARAGr0VbaFdOnHY=");
        assert_eq!(sign(COUNTING.trim_end_matches('='), ""), sign(COUNTING, ""));
    }

    #[test]
    fn while_a_secret_is_replaced_both_sign() {
        let both = sign(&format!("{PUBLISHED}, {COUNTING}"), "x");
        assert_eq!(both, format!("{} {}", sign(PUBLISHED, "x"), sign(COUNTING, "x")));
    }

    #[test]
    fn a_signature_is_verified_with_any_of_the_secrets() {
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "x");
        let verifies = |secrets: &str, timestamp: &str, body: &str, signatures: &str| {
            SigningSecrets::parse(secrets).unwrap().verifies(id, timestamp, body.as_bytes(), signatures)
        };
        let both = sign(&format!("{PUBLISHED}, {COUNTING}"), body);
        for secret in [PUBLISHED, COUNTING] {
            assert!(verifies(secret, "1614265330", body, &both));
            assert!(verifies(secret, "1614265330", body, &format!("v0,x v1,%% {}", sign(secret, body))));
        }
        let signature = sign(PUBLISHED, body);
        for (secret, timestamp, body, signatures) in [
            (COUNTING, "1614265330", body, signature.as_str()),
            (PUBLISHED, "1614265331", body, &signature),
            (PUBLISHED, "1614265330", "y", &signature),
            (PUBLISHED, "1614265330", body, ""),
            (PUBLISHED, "1614265330", body, &signature[..20]),
        ] {
            assert!(!verifies(secret, timestamp, body, signatures), "{signatures}");
        }
    }

    #[test]
    fn bad_secrets_are_refused_without_being_repeated() {
        let long = format!("whsec_{}", "A".repeat(88));
        for text in [
            "",
            ",",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_c2hvcnQ=",
            "whsec_!!!!",
            &long,
            &[PUBLISHED; 3].join(","),
        ] {
            let refusal = SigningSecrets::parse(text).unwrap_err().to_string();
            assert!(refusal.starts_with("SIGNING_SECRET must be "), "{refusal}");
            assert!(text.len() < 8 || !refusal.contains(&text[..8.min(text.len())]), "{refusal}");
        }
        assert_eq!(format!("{:?}", SigningSecrets::parse(PUBLISHED).unwrap()), "SigningSecrets(1)");
    }
}
