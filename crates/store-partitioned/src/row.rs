use std::fmt;

use store::StoreError;

/// The name of a partition: short, of lower-case letters, digits and hyphens. All rows of a partition lie on the same replicas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(String);

impl Partition {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which write a row comes from. Each write has one of its own, made by its writer; equality is all that it has. Zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u128);

/// A row as it was read. Columns that were not asked for, or never written, are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub key: Vec<u8>,
    /// Where it was found, if it was found by an index; otherwise empty.
    pub position: Vec<u8>,
    pub version: Version,
    /// What changes often, and is small.
    pub head: Vec<u8>,
    /// What changes rarely, and may be large.
    pub body: Vec<u8>,
    /// What grows now and then, and may be large.
    pub log: Vec<u8>,
}

/// Which columns of a row are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    pub head: bool,
    pub body: bool,
    pub log: bool,
}

impl Columns {
    /// Key and position only; the version is not filled either.
    pub const NONE: Self = Self { head: false, body: false, log: false };
    pub const HEAD: Self = Self { head: true, body: false, log: false };
    pub const HEAD_AND_BODY: Self = Self { head: true, body: true, log: false };
    pub const ALL: Self = Self { head: true, body: true, log: true };
}

/// What a read is sure to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Takes its place in the one order of all writes of the row: it sees every write that was applied before it began, answered or not,
    /// and what it did not see is applied after it or never. The fence is built on this.
    Linearizable,
    /// Sees every write that was answered before it began. Of those under way it may see one now and not the next time.
    Committed,
    /// What some replica has, perhaps long out of date. Only for hints.
    Eventual,
}

/// The ordered indexes of a partition. A row has at most one position in each; positions are unique within an index, because they
/// end with what identifies the row. No more than five: that many a table of DynamoDB can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    First,
    Second,
    Third,
    Fourth,
}

impl Index {
    pub const ALL: [Self; Self::COUNT] = [Self::First, Self::Second, Self::Third, Self::Fourth];
    pub const COUNT: usize = 4;

    /// From 1 on: 0 may be the rows themselves.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Where a row stands in the indexes of its partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Positions([Option<Vec<u8>>; Index::COUNT]);

impl Positions {
    #[must_use]
    pub fn with(mut self, index: Index, position: Vec<u8>) -> Self {
        self.0[index as usize] = Some(position);
        self
    }

    pub fn at(&self, index: Index) -> Option<&[u8]> {
        self.0[index as usize].as_deref()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Index, &[u8])> {
        Index::ALL.into_iter().filter_map(|index| Some((index, self.at(index)?)))
    }
}

/// Rows from one key or position up to before another, by bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The index whose positions limit the range; `None` where keys do.
    pub index: Option<Index>,
    /// The first one, which is part of it.
    pub from: Vec<u8>,
    /// The first one after it; `None` for all that follow.
    pub to: Option<Vec<u8>>,
    pub is_descending: bool,
    pub limit: usize,
}

impl Range {
    /// Everything, by keys.
    pub const fn all(limit: usize) -> Self {
        Self { index: None, from: Vec::new(), to: None, is_descending: false, limit }
    }

    pub const fn of(index: Index, from: Vec<u8>, to: Option<Vec<u8>>, limit: usize) -> Self {
        Self { index: Some(index), from, to, is_descending: false, limit }
    }
}

/// The first key or position after this one, in the order of bytes.
#[must_use]
pub fn after(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0);
    bytes
}

/// One row to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub key: Vec<u8>,
    pub condition: Condition,
    pub change: Change,
    /// Where the row stands if the condition holds: for databases whose indexes are rows that the driver must remove.
    pub before: Positions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// There is no row with this key.
    Absent,
    /// The row has this version, which is never that of another row.
    Is(Version),
    /// None: the last writer wins. Rows that are written in this way never carry positions, and are never written under a condition,
    /// since databases order the two kinds of writes by different clocks.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Put {
        version: Version,
        head: Vec<u8>,
        /// `None` leaves what is there.
        body: Option<Vec<u8>>,
        /// `None` leaves what is there.
        log: Option<Vec<u8>>,
        positions: Positions,
    },
    Delete,
}

/// What became of one write.
#[derive(Debug, Clone)]
pub enum Outcome {
    Applied,
    /// The condition did not hold; nothing was changed.
    Refused,
    /// It failed, and its error says whether it may have been applied.
    Failed(StoreError),
}

/// How much a database takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many rows one write carries best. More are split by the driver.
    pub rows_per_write: usize,
    /// How many bytes one row may have, keys and positions included.
    pub row_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows_per_write: 500, row_bytes_max: 16 * 1024 * 1024 }
    }
}
