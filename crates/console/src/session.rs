//! Who is logged in: a signed cookie that names the key, and nothing that opens anything.
//!
//! No node keeps sessions. The cookie is the same for all of them, because the key that signs it is derived from `API_KEY`; the key that
//! it names is looked up in the keyring at each request, so that revoking it ends its sessions within a second. The rights of a key never
//! change, so that the cookie has to name no generation of them.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{AccessKey, AccessKeyId, Span, Timestamp};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// How long a login lasts.
pub(crate) const LASTS: Span = Span::from_secs(12 * 60 * 60);
/// Clocks of nodes differ a little.
const AHEAD_MAX: Span = Span::from_secs(60);
/// What HKDF binds the signing key to: no other key that is derived from `API_KEY` is the same.
const PURPOSE: &[u8] = b"timer console session 2";
const ADMINISTRATOR: &str = "administrator";

/// Issues cookies and reads them.
pub(crate) struct Sessions {
    administrator: [u8; 32],
    signing_key: [u8; 32],
}

/// Whose cookie it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Administrator,
    Key(AccessKeyId),
}

/// What a cookie says: who has logged in, and until when that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) holder: Holder,
    /// When the session ends, by the clock of the machine.
    pub(crate) ends_at: Timestamp,
}

impl Sessions {
    pub(crate) fn new(api_key: &str) -> Self {
        let mut signing_key = [0; 32];
        let derived = Hkdf::<Sha256>::new(None, api_key.as_bytes()).expand(PURPOSE, &mut signing_key);
        assert!(derived.is_ok(), "32 bytes are far below the longest key that HKDF gives");
        Self { administrator: AccessKey::hash_of(api_key.as_bytes()), signing_key }
    }

    /// Whether this is the administrator's key. The comparison takes constant time.
    pub(crate) fn is_administrator(&self, shown: &str) -> bool {
        AccessKey::hash_of(shown.as_bytes()).ct_eq(&self.administrator).into()
    }

    /// The value of the cookie.
    pub(crate) fn issue(&self, holder: Holder, now: Timestamp) -> String {
        let name = match holder {
            Holder::Administrator => ADMINISTRATOR.to_owned(),
            Holder::Key(id) => id.to_string(),
        };
        let said = format!("{name}.{}", now.as_micros());
        let signature = BASE64_URL_SAFE_NO_PAD.encode(mac(&self.signing_key, said.as_bytes()));
        format!("{said}.{signature}")
    }

    /// The session of this cookie, if it is one of ours and has not run out.
    pub(crate) fn read(&self, cookie: &str, now: Timestamp) -> Option<Session> {
        let (said, signature) = cookie.rsplit_once('.')?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !bool::from(mac(&self.signing_key, said.as_bytes())[..].ct_eq(&signature)) {
            return None;
        }
        let (name, issued_at) = said.split_once('.')?;
        let issued_at = Timestamp::from_micros(issued_at.parse().ok()?);
        let ends_at = issued_at.saturating_add(LASTS);
        if issued_at > now.saturating_add(AHEAD_MAX) || now >= ends_at {
            return None;
        }
        let holder = match name {
            ADMINISTRATOR => Holder::Administrator,
            id => AccessKeyId::parse(id).ok().map(Holder::Key)?,
        };
        Some(Session { holder, ends_at })
    }
}

/// HMAC-SHA-256.
fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::NOW;

    #[test]
    fn a_cookie_is_its_holders_until_it_runs_out() {
        let sessions = Sessions::new("0123456789abcdef0123456789abcdef");
        for holder in [Holder::Administrator, Holder::Key(AccessKeyId::random(NOW))] {
            let cookie = sessions.issue(holder, NOW);
            let session = Some(Session { holder, ends_at: NOW.saturating_add(LASTS) });
            assert_eq!(sessions.read(&cookie, NOW), session);
            let last = NOW.saturating_add(LASTS).saturating_sub(Span::from_micros(1));
            assert_eq!(sessions.read(&cookie, last), session);
            assert_eq!(sessions.read(&cookie, NOW.saturating_add(LASTS)), None);
            assert_eq!(sessions.read(&cookie, NOW.saturating_sub(Span::from_secs(3600))), None, "from the future");
        }
    }

    #[test]
    fn every_node_and_every_build_signs_with_the_key_that_hkdf_derives() {
        let cookie = Sessions::new("0123456789abcdef0123456789abcdef").issue(Holder::Administrator, NOW);
        // By RFC 5869, computed with another implementation.
        assert_eq!(cookie, "administrator.1893456000000000.ZR5X1wocBEvGXv0ZGB3iu1EZorblyCJCwdX8TqbJhg4");
    }

    #[test]
    fn a_cookie_that_was_touched_or_is_of_another_installation_opens_nothing() {
        let sessions = Sessions::new("0123456789abcdef0123456789abcdef");
        let cookie = sessions.issue(Holder::Key(AccessKeyId::random(NOW)), NOW);
        let (said, signature) = cookie.rsplit_once('.').unwrap();
        let (_, issued_at) = said.split_once('.').unwrap();
        for touched in [
            String::new(),
            ".".to_owned(),
            said.to_owned(),
            format!("{said}."),
            format!("administrator.{issued_at}.{signature}"),
            format!("{said}0.{signature}"),
            format!("{}.{}", said, &signature[1..]),
            format!("{cookie}A"),
        ] {
            assert_eq!(sessions.read(&touched, NOW), None, "{touched}");
        }
        assert_eq!(Sessions::new("another-key-of-an-administrator-").read(&cookie, NOW), None);
        assert!(!cookie.contains("0123456789abcdef"));
    }
}
