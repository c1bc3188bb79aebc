//! A place in a list, as an opaque token that is good for keys with the same namespaces as the one that it was given to.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use commands::{Cursor, Order, Sort};
use domain::{Caller, Invalid, Namespace, TimerId, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// One byte for the order, eight for the time, sixteen for the id; then four to tell a token from a guess,
/// and from one that another tenant was given.
const PLACE_BYTES: usize = 25;
const TOKEN_BYTES: usize = PLACE_BYTES + 4;

pub(crate) fn write(cursor: Cursor, sort: Sort, order: Order, caller: &Caller) -> String {
    let mut bytes = Vec::with_capacity(TOKEN_BYTES);
    bytes.push(kind(sort, order));
    bytes.extend(cursor.at.as_micros().to_be_bytes());
    bytes.extend(cursor.id.as_uuid().as_bytes());
    bytes.extend(check(&bytes, caller));
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn read(token: &str, sort: Sort, order: Order, caller: &Caller) -> Result<Cursor, Invalid> {
    let wrong = || Invalid::new("cursor", "must be a next_cursor of an earlier answer to a key with the same namespaces");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong())?;
    let bytes: [u8; TOKEN_BYTES] = bytes.try_into().map_err(|_| wrong())?;
    let (place, sum) = bytes.split_at(PLACE_BYTES);
    if check(place, caller) != sum {
        return Err(wrong());
    }
    if place[0] != kind(sort, order) {
        return Err(Invalid::new("cursor", "must be used with the sort and order that it was made with"));
    }
    let at = i64::from_be_bytes(place[1..9].try_into().map_err(|_| wrong())?);
    let id = Uuid::from_slice(&place[9..]).map_err(|_| wrong())?;
    Ok(Cursor { at: Timestamp::from_micros(at), id: TimerId::from_uuid(id) })
}

const fn kind(sort: Sort, order: Order) -> u8 {
    let sort = match sort {
        Sort::CreatedAt => 0,
        Sort::ExecuteAt => 1,
    };
    let order = match order {
        Order::Ascending => 0,
        Order::Descending => 2,
    };
    sort | order
}

fn check(place: &[u8], caller: &Caller) -> [u8; 4] {
    let mut digest = Sha256::new_with_prefix(place);
    let mut namespaces: Vec<_> = caller.bound_to().unwrap_or_default().iter().map(Namespace::as_str).collect();
    namespaces.sort_unstable();
    for namespace in namespaces {
        digest.update([0]);
        digest.update(namespace);
    }
    let digest = digest.finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}

#[cfg(test)]
mod tests {
    use domain::{Access, AccessKey, Namespaces, Rights};

    use super::*;

    #[test]
    fn a_token_reads_back_as_the_place_it_was_made_from() {
        let cursor = Cursor { at: Timestamp::from_micros(1_700_000_000_000_001), id: TimerId::random(Timestamp::from_micros(1)) };
        for sort in [Sort::CreatedAt, Sort::ExecuteAt] {
            for order in [Order::Ascending, Order::Descending] {
                assert_eq!(
                    read(&write(cursor, sort, order, &Caller::Administrator), sort, order, &Caller::Administrator),
                    Ok(cursor)
                );
            }
        }
    }

    #[test]
    fn another_token_is_refused() {
        let cursor = Cursor { at: Timestamp::from_micros(1), id: TimerId::random(Timestamp::from_micros(1)) };
        let caller = &Caller::Administrator;
        let token = write(cursor, Sort::CreatedAt, Order::Descending, caller);
        assert!(
            read(&token, Sort::ExecuteAt, Order::Descending, caller).unwrap_err().to_string().starts_with("cursor must be used")
        );
        let swapped = if token.starts_with('A') { "B" } else { "A" };
        for wrong in ["", "x", "!!", &token[1..], &format!("{token}A"), &format!("{swapped}{}", &token[1..])] {
            let complaint = read(wrong, Sort::CreatedAt, Order::Descending, caller).unwrap_err().to_string();
            assert!(complaint.starts_with("cursor must be a next_cursor of an earlier answer"), "{wrong}: {complaint}");
        }
    }
    #[test]
    fn a_token_is_good_for_keys_with_the_same_namespaces() {
        let holder = |names: &[&str]| {
            let namespaces = Namespaces::Only(names.iter().map(|name| Namespace::parse(name).unwrap()).collect());
            let access = Access { namespaces, rights: Rights::Read };
            Caller::Holder(AccessKey::issue("k", access, [7; 32], Timestamp::from_micros(1)).unwrap().0.into())
        };
        let cursor = Cursor { at: Timestamp::from_micros(1), id: TimerId::random(Timestamp::from_micros(1)) };
        let token = write(cursor, Sort::CreatedAt, Order::Descending, &holder(&["acme", "bolt"]));
        let read = |caller: &Caller| read(&token, Sort::CreatedAt, Order::Descending, caller);
        assert_eq!(read(&holder(&["bolt", "acme"])), Ok(cursor));
        for other in [holder(&["acme"]), holder(&["acmebolt"]), holder(&["bolt", "acme", "cafe"]), Caller::Administrator] {
            assert!(read(&other).is_err(), "{other:?}");
        }
    }
}
