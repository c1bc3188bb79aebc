//! The units that share limits: the receiver of a call and the tenant for which it is made.

use std::cell::RefCell;

use sha2::{Digest, Sha256};

use crate::{Callback, Definition, Namespace};

/// A receiver as one tenant calls it. It is one number, because a million of them wait in memory and each due row has one: the
/// low 40 bits are the receiver, the high 24 the tenant. Both are hashes, so two may rarely collide; those share their limits.
///
/// The previous version stored 64 bits of the receiver's hash. In its rows the receiver is the same as today, and each receiver
/// counts as a tenant by itself until the timer has ended or its callback is replaced: a retry keeps the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(pub u64);

/// Receivers that share a fate: one host and port, the NATS server, a stream of it, or the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(u64);

/// A namespace, as far as limits are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(u32);

const RECEIVER_BITS: u32 = 40;
const RECEIVER_MASK: u64 = (1 << RECEIVER_BITS) - 1;

impl Destination {
    pub const fn new(tenant: TenantId, receiver: ReceiverId) -> Self {
        Self((tenant.0 as u64) << RECEIVER_BITS | receiver.0)
    }

    pub const fn receiver(self) -> ReceiverId {
        ReceiverId(self.0 & RECEIVER_MASK)
    }

    pub const fn tenant(self) -> TenantId {
        TenantId((self.0 >> RECEIVER_BITS) as u32)
    }
}

thread_local! {
    /// The receiver that this thread was asked for last: timers that are registered one after the other mostly call the same one, and
    /// the digest would be among the dearest parts of a create.
    static LAST_RECEIVER: RefCell<(String, ReceiverId)> = const { RefCell::new((String::new(), ReceiverId(0))) };
}

impl ReceiverId {
    pub fn of(callback: &Callback) -> Self {
        let called = callback.called();
        LAST_RECEIVER.with_borrow_mut(|(last, id)| {
            if last.is_empty() || *last != *called {
                *id = Self::digest(&called);
                last.clear();
                last.push_str(&called);
            }
            *id
        })
    }

    fn digest(called: &str) -> Self {
        let digest = Sha256::digest(called.as_bytes());
        let hash = digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        Self(hash & RECEIVER_MASK)
    }
}

impl TenantId {
    /// The number that destinations carry.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The high bits of FNV-1a after a finisher, without which they hardly depend on the last characters. The number is stored
    /// in rows, so the function never changes. It need not resist collisions: a tenant does not choose its namespace.
    pub fn of(namespace: &Namespace) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = namespace.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
        let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        Self(((mixed ^ mixed >> 33) >> RECEIVER_BITS) as u32)
    }
}

impl Definition {
    /// The destination whose limits the calls count against.
    pub fn destination(&self) -> Destination {
        Destination::new(TenantId::of(&self.namespace), ReceiverId::of(&self.callback))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(json: &str) -> ReceiverId {
        ReceiverId::of(&Callback::from_json(json).unwrap())
    }

    fn tenant(namespace: &str) -> TenantId {
        TenantId::of(&Namespace::parse(namespace).unwrap())
    }

    #[test]
    fn all_on_one_host_and_port_is_one_receiver() {
        let receiver = |url: &str| receiver(&format!(r#"{{"type":"http","url":"{url}"}}"#));
        assert_eq!(receiver("http://a/x"), receiver("http://a:80/y"));
        assert_ne!(receiver("http://a/x"), receiver("https://a/x"));
        assert_ne!(receiver("http://a/x"), receiver("http://b/x"));
    }

    #[test]
    fn streams_are_receivers_of_their_own_as_far_as_subjects_tell() {
        let receiver =
            |topic: &str, jetstream: bool| receiver(&format!(r#"{{"type":"nats","topic":"{topic}","jetstream":{jetstream}}}"#));
        assert_eq!(receiver("a.b", false), receiver("c", false));
        assert_eq!(receiver("a.b", true), receiver("a.c", true));
        assert_ne!(receiver("a.b", true), receiver("b.b", true));
        assert_ne!(receiver("a.b", true), receiver("a.b", false));
        assert_ne!(ReceiverId::of(&Callback::EVENT), receiver("a.b", false));
    }

    #[test]
    fn a_destination_falls_into_tenant_and_receiver() {
        let (tenant, receiver) = (tenant("acme"), receiver(r#"{"type":"http","url":"http://a/"}"#));
        let destination = Destination::new(tenant, receiver);
        assert_eq!((destination.tenant(), destination.receiver()), (tenant, receiver));
        assert_eq!(
            (Destination(u64::MAX).tenant(), Destination(u64::MAX).receiver()),
            (TenantId(0xff_ffff), ReceiverId(RECEIVER_MASK))
        );
    }

    #[test]
    fn namespaces_that_are_alike_are_different_tenants() {
        let tenants: std::collections::BTreeSet<_> = (0..1000).map(|number| tenant(&format!("tenant-{number}"))).collect();
        assert_eq!(tenants.len(), 1000);
    }

    /// Rows hold these numbers, so their meaning must not change.
    #[test]
    fn stored_numbers_keep_their_meaning() {
        assert_eq!(tenant("default"), TenantId(0xd5_8b43));
        assert_eq!(receiver(r#"{"type":"http","url":"http://127.0.0.1:9/x"}"#), ReceiverId(0x3c_27a8_fce5));
    }

    /// The previous version stored the first 64 bits of the digest, whatever the namespace.
    #[test]
    fn rows_of_the_version_before_keep_their_receiver() {
        let digest = Sha256::digest(b"http://a.example:81");
        let stored = Destination(digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte)));
        assert_eq!(stored.receiver(), receiver(r#"{"type":"http","url":"http://a.example:81/"}"#));
    }
}
