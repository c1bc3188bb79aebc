//! Stretches of an index in which no entry lives.
//!
//! What is deleted stays in Cassandra for hours as a mark (a tombstone), and a range that begins where timers were due long ago reads all
//! of those marks. So a partition notes, in a column of its own, from where to where an index is empty, and ranges pass over that.
//!
//! ```text
//!   announced  ─▶ looked at, linearizably: nothing lives there ─▶ sure: ranges pass over it
//!       └─────────────── an entry is made in it ─────────────────┴──▶ cut, in the same batch
//! ```
//!
//! Every batch that makes entries has the condition that the note is the one its writer knows. So a writer that makes an entry
//! within a stretch, announced or sure, cuts it, and no stretch becomes sure after an entry was made in it.

use uuid::Uuid;

/// How many stretches are noted. A timer's life has three parts, and lists may find more.
const STRETCHES_MAX: usize = 12;

/// The note of a partition. It is encoded as it stands: kind, whether it is sure, and both ends with their lengths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gaps {
    /// `None` while there was never a note.
    pub version: Option<Uuid>,
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub kind: i8,
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    is_sure: bool,
}

impl Gaps {
    /// A note that cannot be read counts as an empty one, which is always right.
    pub fn decode(version: Option<Uuid>, bytes: &[u8]) -> Self {
        Self { version, stretches: decode(bytes).unwrap_or_default() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for stretch in &self.stretches {
            bytes.extend([stretch.kind.cast_unsigned(), u8::from(stretch.is_sure)]);
            for end in [&stretch.from, &stretch.to] {
                bytes.extend(u16::try_from(end.len()).unwrap_or(u16::MAX).to_be_bytes());
                bytes.extend(end);
            }
        }
        bytes
    }

    /// Takes a position out. Says whether that changed anything: what lies before the position stays.
    pub fn cut(&mut self, kind: i8, position: &[u8]) -> bool {
        let mut is_cut = false;
        for stretch in &mut self.stretches {
            if stretch.kind == kind && stretch.from.as_slice() <= position && position < stretch.to.as_slice() {
                stretch.to = position.to_vec();
                is_cut = true;
            }
        }
        self.stretches.retain(|stretch| stretch.from < stretch.to);
        is_cut
    }

    /// Notes a stretch that seems to be empty, as far as it is not known to be. Says which one.
    pub fn announce(&mut self, kind: i8, from: &[u8], to: &[u8]) -> Option<Stretch> {
        self.stretches.retain(|stretch| stretch.is_sure);
        let known = self
            .stretches
            .iter()
            .find(|known| known.kind == kind && known.from.as_slice() <= from && from <= known.to.as_slice());
        let from = known.map_or(from, |known| known.to.as_slice()).to_vec();
        if from.as_slice() >= to || from.len().max(to.len()) > usize::from(u16::MAX) {
            return None;
        }
        let stretch = Stretch { kind, from, to: to.to_vec(), is_sure: false };
        self.stretches.push(stretch.clone());
        Some(stretch)
    }

    /// What was announced is sure, and joins what it continues.
    pub fn make_sure(&mut self, announced: &Stretch) {
        self.stretches.retain(|stretch| stretch.is_sure);
        let lies_within =
            |known: &Stretch| known.kind == announced.kind && known.from >= announced.from && known.to <= announced.to;
        self.stretches.retain(|known| !lies_within(known));
        let before = |known: &&mut Stretch| known.kind == announced.kind && known.to == announced.from;
        match self.stretches.iter_mut().find(before) {
            Some(known) => known.to.clone_from(&announced.to),
            None => self.stretches.push(Stretch { is_sure: true, ..announced.clone() }),
        }
        let excess = self.stretches.len().saturating_sub(STRETCHES_MAX);
        self.stretches.drain(..excess);
    }

    /// What is left of a range without the stretches that are surely empty, in ascending order. An end that is missing is the end of all.
    pub fn rest(&self, kind: i8, from: &[u8], to: Option<&[u8]>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut sure: Vec<&Stretch> = self.stretches.iter().filter(|stretch| stretch.is_sure && stretch.kind == kind).collect();
        sure.sort_by(|one, other| one.from.cmp(&other.from));
        let (mut parts, mut from) = (Vec::new(), from.to_vec());
        for stretch in sure {
            if stretch.to <= from || to.is_some_and(|to| stretch.from.as_slice() >= to) {
                continue;
            }
            if stretch.from > from {
                parts.push((from, Some(stretch.from.clone())));
            }
            from = stretch.to.clone();
        }
        if to.is_none_or(|to| from.as_slice() < to) {
            parts.push((from, to.map(<[u8]>::to_vec)));
        }
        parts
    }
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Stretch>> {
    let mut stretches = Vec::new();
    while !bytes.is_empty() {
        let ([kind, is_sure], mut rest) = bytes.split_first_chunk::<2>()?;
        let mut end = || {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (end, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            Some(end.to_vec())
        };
        let (from, to) = (end()?, end()?);
        stretches.push(Stretch { kind: kind.cast_signed(), from, to, is_sure: *is_sure == 1 });
        bytes = rest;
    }
    Some(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(gaps: &mut Gaps, from: &[u8], to: &[u8]) {
        let announced = gaps.announce(1, from, to).unwrap();
        gaps.make_sure(&announced);
    }

    fn rest(gaps: &Gaps, from: &[u8], to: Option<&[u8]>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        gaps.rest(1, from, to)
    }

    #[test]
    fn ranges_pass_over_what_is_sure_and_nothing_else() {
        let mut gaps = Gaps::default();
        assert!(gaps.announce(1, b"b", b"f").is_some());
        assert_eq!(rest(&gaps, b"a", None), [(b"a".to_vec(), None)], "announced only");
        sure(&mut gaps, b"b", b"f");
        assert_eq!(rest(&gaps, b"a", None), [(b"a".to_vec(), Some(b"b".to_vec())), (b"f".to_vec(), None)]);
        assert_eq!(rest(&gaps, b"c", Some(b"x")), [(b"f".to_vec(), Some(b"x".to_vec()))]);
        assert_eq!(rest(&gaps, b"b", Some(b"f")), []);
        assert_eq!(rest(&gaps, b"f", None), [(b"f".to_vec(), None)]);
        assert_eq!(gaps.rest(2, b"c", None), [(b"c".to_vec(), None)], "another index");
    }

    #[test]
    fn a_stretch_grows_and_is_cut() {
        let mut gaps = Gaps::default();
        sure(&mut gaps, b"b", b"f");
        assert_eq!(gaps.announce(1, b"b", b"f"), None, "known");
        sure(&mut gaps, b"b", b"k");
        assert_eq!(rest(&gaps, b"b", None), [(b"k".to_vec(), None)], "one stretch");
        assert!(!gaps.cut(1, b"k"), "its end is not part of it");
        assert!(!gaps.cut(2, b"c"));
        assert!(gaps.cut(1, b"d"));
        assert_eq!(rest(&gaps, b"b", None), [(b"d".to_vec(), None)]);
        assert!(gaps.announce(1, b"b", b"z").is_some());
        assert!(gaps.cut(1, b"e"), "what is announced is cut as well");
        assert!(gaps.cut(1, b"b"));
        assert_eq!(rest(&gaps, b"a", Some(b"c")), [(b"a".to_vec(), Some(b"c".to_vec()))]);
    }

    #[test]
    fn a_note_comes_back() {
        let mut gaps = Gaps { version: Some(Uuid::from_u128(7)), stretches: Vec::new() };
        sure(&mut gaps, b"", b"f");
        gaps.announce(2, b"x", b"y");
        assert_eq!(Gaps::decode(gaps.version, &gaps.encode()), gaps);
        assert_eq!(Gaps::decode(gaps.version, &[1, 2, 3]).stretches, []);
    }
}
