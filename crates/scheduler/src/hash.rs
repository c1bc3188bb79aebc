use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher},
};

/// The finisher of SplitMix64: every bit depends on all other bits.
pub const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes times, ids, shards, tenants and receivers, quickly.
#[derive(Default)]
pub struct PositionHasher(u64);

/// A map by tenant, receiver or both.
pub type Shares<K, V> = HashMap<K, V, Seed>;

/// Clients choose their receivers and may choose their ids, so each hash begins with a secret of this process.
#[derive(Debug, Clone, Copy)]
pub struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(rand::random())
    }
}

impl BuildHasher for Seed {
    type Hasher = PositionHasher;

    fn build_hasher(&self) -> PositionHasher {
        PositionHasher(self.0)
    }
}

impl Hasher for PositionHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}
