//! A position in the events, as an opaque token.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{Invalid, Timestamp};
use sha2::{Digest, Sha256};

/// Tells the token from those of lists, and from later kinds of itself.
const KIND: u8 = 0xe1;
/// The kind, then eight bytes for the position; then four to tell a token from a guess.
const POSITION_BYTES: usize = 9;
const TOKEN_BYTES: usize = POSITION_BYTES + 4;

pub(super) fn write(position: Timestamp) -> String {
    let mut bytes = Vec::with_capacity(TOKEN_BYTES);
    bytes.push(KIND);
    bytes.extend(position.as_micros().to_be_bytes());
    bytes.extend(check(&bytes));
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn read(field: &str, token: &str) -> Result<Timestamp, Invalid> {
    let wrong = || wrong(field);
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong())?;
    let bytes: [u8; TOKEN_BYTES] = bytes.try_into().map_err(|_| wrong())?;
    let (position, sum) = bytes.split_at(POSITION_BYTES);
    if position[0] != KIND || check(position) != sum {
        return Err(wrong());
    }
    let micros = position[1..].try_into().map_err(|_| wrong())?;
    Ok(Timestamp::from_micros(i64::from_be_bytes(micros)))
}

pub(super) fn wrong(field: &str) -> Invalid {
    Invalid::new(field, "must be the id of an event")
}

fn check(position: &[u8]) -> [u8; 4] {
    let digest = Sha256::digest(position);
    [digest[0], digest[1], digest[2], digest[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_as_the_position_it_was_made_from() {
        for micros in [0, 1, -1, 1_700_000_000_000_001] {
            let position = Timestamp::from_micros(micros);
            assert_eq!(read("after", &write(position)), Ok(position));
        }
    }

    #[test]
    fn another_token_is_refused() {
        let token = write(Timestamp::from_micros(1_700_000_000_000_001));
        let swapped = if token.ends_with('A') { "Q" } else { "A" };
        let forged = format!("{}{swapped}", &token[..token.len() - 1]);
        for wrong in ["", "x", "!!", &token[1..], &format!("{token}A"), &forged] {
            assert_eq!(read("after", wrong).unwrap_err().to_string(), "after must be the id of an event", "{wrong}");
        }
    }
}
