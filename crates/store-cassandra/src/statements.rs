//! The statements, prepared once. Reads are prepared when they are first needed: there are many forms of them.

use scylla::{
    client::session::Session,
    errors::{ExecutionError, PrepareError},
    policies::retry::FallthroughRetryPolicy,
    serialize::{
        SerializationError,
        row::{RowSerializationContext, SerializeRow},
        writers::RowWriter,
    },
    statement::{Consistency, SerialConsistency, Statement, batch::Batch, prepared::PreparedStatement},
    value::MaybeUnset,
};
use std::sync::Arc;
use store_partitioned::Columns;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::schema::ROW;

/// How many rows a page of an answer has, without and with columns that may be large.
const NARROW_PAGE: i32 = 2_000;
const WIDE_PAGE: i32 = 200;

/// How sure reads and writes are. Those of one datacenter are only right where no other node of this service uses another one.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    pub serial: SerialConsistency,
    pub linearizable: Consistency,
    pub committed: Consistency,
    pub eventual: Consistency,
}

impl Levels {
    pub const EVERYWHERE: Self = Self {
        serial: SerialConsistency::Serial,
        linearizable: Consistency::Serial,
        committed: Consistency::Quorum,
        eventual: Consistency::One,
    };
    pub const OF_ONE_DATACENTER: Self = Self {
        serial: SerialConsistency::LocalSerial,
        linearizable: Consistency::LocalSerial,
        committed: Consistency::LocalQuorum,
        eventual: Consistency::LocalOne,
    };

    pub const fn of(self, consistency: store_partitioned::Consistency) -> Consistency {
        match consistency {
            store_partitioned::Consistency::Linearizable => self.linearizable,
            store_partitioned::Consistency::Committed => self.committed,
            store_partitioned::Consistency::Eventual => self.eventual,
        }
    }
}

/// Which rows of a partition are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Keys,
    From,
    FromTo,
    FromBackwards,
    FromToBackwards,
}

impl Form {
    const COUNT: usize = 5;

    const fn condition(self) -> &'static str {
        match self {
            Self::Keys => "key IN ?",
            Self::From => "key >= ? ORDER BY kind ASC, key ASC LIMIT ?",
            Self::FromTo => "key >= ? AND key < ? ORDER BY kind ASC, key ASC LIMIT ?",
            Self::FromBackwards => "key >= ? ORDER BY kind DESC, key DESC LIMIT ?",
            Self::FromToBackwards => "key >= ? AND key < ? ORDER BY kind DESC, key DESC LIMIT ?",
        }
    }
}

/// What is read of each row or index entry, after its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// The key of the row that an index entry stands for.
    Entry,
    Row(Columns),
}

impl Selected {
    /// Entries, and every choice among three columns.
    const COUNT: usize = 9;

    fn place(self) -> usize {
        match self {
            Self::Entry => 8,
            Self::Row(columns) => usize::from(columns.head) + 2 * usize::from(columns.body) + 4 * usize::from(columns.log),
        }
    }

    /// `key`, then `version` unless nothing but the key is asked for, then the columns.
    fn list(self) -> String {
        match self {
            Self::Entry => "key, row".to_owned(),
            Self::Row(Columns::NONE) => "key".to_owned(),
            Self::Row(columns) => {
                let named = [(columns.head, ", head"), (columns.body, ", body"), (columns.log, ", log")];
                let asked: String = named.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, name)| name).collect();
                format!("key, version{asked}")
            }
        }
    }

    const fn page(self) -> i32 {
        match self {
            Self::Row(Columns { body: true, .. } | Columns { log: true, .. }) => WIDE_PAGE,
            _ => NARROW_PAGE,
        }
    }
}

pub struct Statements {
    table: String,
    levels: Levels,
    insert: PreparedStatement,
    update: PreparedStatement,
    remove: PreparedStatement,
    enter: PreparedStatement,
    leave: PreparedStatement,
    put: PreparedStatement,
    delete: PreparedStatement,
    note: PreparedStatement,
    reads: [[OnceCell<PreparedStatement>; Selected::COUNT]; Form::COUNT],
}

impl Statements {
    pub async fn prepare(session: &Session, table: String, levels: Levels) -> Result<Self, PrepareError> {
        let row = "part = ? AND kind = 0 AND key = ?";
        let values = "(part, kind, key, version, head, body, log) VALUES (?, 0, ?, ?, ?, ?, ?)";
        let prepared = async |text: String| session.prepare(text).await;
        Ok(Self {
            insert: prepared(format!("INSERT INTO {table} {values} IF NOT EXISTS")).await?,
            update: prepared(format!("UPDATE {table} SET version = ?, head = ?, body = ?, log = ? WHERE {row} IF version = ?"))
                .await?,
            remove: prepared(format!("DELETE FROM {table} WHERE {row} IF version = ?")).await?,
            enter: prepared(format!("INSERT INTO {table} (part, kind, key, row) VALUES (?, ?, ?, ?)")).await?,
            leave: prepared(format!("DELETE FROM {table} WHERE part = ? AND kind = ? AND key = ?")).await?,
            put: prepared(format!("INSERT INTO {table} {values}")).await?,
            delete: prepared(format!("DELETE FROM {table} WHERE {row}")).await?,
            note: prepared(format!(
                "UPDATE {table} SET version = ?, head = ? WHERE part = ? AND kind = -1 AND key = 0x00 IF version = ?"
            ))
            .await?,
            reads: Default::default(),
            table,
            levels,
        })
    }

    pub async fn read(&self, session: &Session, form: Form, selected: Selected) -> Result<PreparedStatement, ExecutionError> {
        let cell = &self.reads[form as usize][selected.place()];
        let statement = cell
            .get_or_try_init(|| async {
                let (list, condition) = (selected.list(), form.condition());
                let text = format!("SELECT {list} FROM {} WHERE part = ? AND kind = ? AND {condition}", self.table);
                let mut statement = session.prepare(Statement::new(text)).await?;
                statement.set_page_size(selected.page());
                statement.set_is_idempotent(true);
                Ok::<_, ExecutionError>(statement)
            })
            .await?;
        Ok(statement.clone())
    }

    /// Marks a batch as one that is never sent twice behind our back: what became of it is read back instead.
    pub fn set_levels(&self, batch: &mut Batch) {
        batch.set_consistency(self.levels.committed);
        batch.set_serial_consistency(Some(self.levels.serial));
        batch.set_retry_policy(Some(Arc::new(FallthroughRetryPolicy::new())));
    }

    pub const fn of(&self, values: &Values<'_>) -> &PreparedStatement {
        match values {
            Values::Insert(_) => &self.insert,
            Values::Update(_) => &self.update,
            Values::Remove(_) => &self.remove,
            Values::Enter(_) => &self.enter,
            Values::Leave(_) => &self.leave,
            Values::Put(_) => &self.put,
            Values::Delete(_) => &self.delete,
            Values::Note(_) => &self.note,
        }
    }
}

pub type Column<'a> = MaybeUnset<&'a [u8]>;
type Key<'a> = (&'a str, &'a [u8]);
type Whole<'a> = (&'a str, &'a [u8], Uuid, &'a [u8], Column<'a>, Column<'a>);

/// The values of one statement of a batch.
#[derive(Debug)]
pub enum Values<'a> {
    Insert(Whole<'a>),
    Update((Uuid, &'a [u8], Column<'a>, Column<'a>, &'a str, &'a [u8], Uuid)),
    Remove((&'a str, &'a [u8], Uuid)),
    Enter((&'a str, i8, &'a [u8], &'a [u8])),
    Leave((&'a str, i8, &'a [u8])),
    Put(Whole<'a>),
    Delete(Key<'a>),
    /// Its new version and text, and the version that it must have: none where there is no note yet.
    Note((Uuid, Column<'a>, &'a str, Option<Uuid>)),
}

impl SerializeRow for Values<'_> {
    fn serialize(&self, context: &RowSerializationContext<'_>, writer: &mut RowWriter<'_>) -> Result<(), SerializationError> {
        match self {
            Self::Insert(values) | Self::Put(values) => values.serialize(context, writer),
            Self::Update(values) => values.serialize(context, writer),
            Self::Remove(values) => values.serialize(context, writer),
            Self::Enter(values) => values.serialize(context, writer),
            Self::Leave(values) => values.serialize(context, writer),
            Self::Delete(values) => values.serialize(context, writer),
            Self::Note(values) => values.serialize(context, writer),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// The kind of rows, or of the entries of an index.
pub fn kind_of(index: Option<store_partitioned::Index>) -> i8 {
    index.map_or(ROW, |index| index.number().cast_signed())
}
