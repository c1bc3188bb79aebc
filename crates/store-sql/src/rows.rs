//! Timers in the rows that a statement answers with, read by the names of their columns.

use domain::{CorrelationId, Group, Key, Namespace, Pause, Status, Timer, TimerId, Timestamp};
use store::{Cursor, Sort, StoredTimer, Summary, Unreadable};

use crate::Failure;

/// A row of an answer. Each database has types of its own for the columns.
pub trait Row {
    fn id(&self) -> Result<TimerId, Failure>;
    fn is(&self, column: &str) -> Result<bool, Failure>;
    fn optional_number(&self, column: &str) -> Result<Option<i64>, Failure>;
    fn optional_text(&self, column: &str) -> Result<Option<&str>, Failure>;

    fn number(&self, column: &str) -> Result<i64, Failure> {
        self.optional_number(column)?.ok_or_else(|| absent(column))
    }

    fn text(&self, column: &str) -> Result<&str, Failure> {
        self.optional_text(column)?.ok_or_else(|| absent(column))
    }

    fn time(&self, column: &str) -> Result<Timestamp, Failure> {
        self.number(column).map(Timestamp::from_micros)
    }
}

fn absent(column: &str) -> Failure {
    Unreadable(format!("it has no {column}")).into()
}

/// What changes about a timer without its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub attempt: i64,
    pub last_error: Option<String>,
    pub executed_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub pause: Option<Pause>,
}

impl Standing {
    /// From a row with `waits`, `claimed`, `attempt`, `last_error`, `status`, `executed_at`, `finished_at`, `paused_at` and `pause_note`.
    pub fn of_row(row: &impl Row) -> Result<Self, Failure> {
        let note = row.optional_text("pause_note")?.map(str::to_owned);
        let pause = row.optional_number("paused_at")?.map(|at| Pause { at: Timestamp::from_micros(at), note });
        let status = match (row.is("waits")?, row.is("claimed")?) {
            (true, false) => Some(Status::Pending),
            (true, true) => Some(Status::Executing),
            (false, _) if pause.is_some() => Some(Status::Paused),
            (false, _) => row.optional_text("status")?.and_then(Status::parse),
        };
        Ok(Self {
            status: status.ok_or_else(|| Unreadable("it is neither due nor paused nor finished".to_owned()))?,
            attempt: row.optional_number("attempt")?.unwrap_or_default(),
            last_error: row.optional_text("last_error")?.map(str::to_owned),
            executed_at: row.optional_number("executed_at")?,
            finished_at: row.optional_number("finished_at")?,
            pause,
        })
    }
}

/// The timer in a row with the columns of its definition, standing as given.
pub fn timer(id: TimerId, row: &impl Row, standing: Standing) -> Result<Timer, Failure> {
    Ok(stored(id, row, standing)?.into_timer()?)
}

/// The same for a row whose timer may be damaged or missing, which must not fail a whole call.
pub fn timer_or_complaint(id: TimerId, row: &impl Row, standing: Standing) -> Result<Timer, Unreadable> {
    stored(id, row, standing).map_err(|failure| Unreadable(failure.error.to_string()))?.into_timer()
}

fn stored(id: TimerId, row: &impl Row, standing: Standing) -> Result<StoredTimer, Failure> {
    let optional_text = |column| Ok::<_, Failure>(row.optional_text(column)?.map(str::to_owned));
    Ok(StoredTimer {
        id,
        namespace: row.text("namespace")?.to_owned(),
        key: optional_text("key")?,
        asked: row.number("asked")?,
        callback_config: row.text("callback_config")?.to_owned(),
        metadata: optional_text("metadata")?,
        correlation_id: optional_text("correlation_id")?,
        retry_policy: optional_text("retry_policy")?,
        delivery: row.text("delivery")?.to_owned(),
        group: optional_text("group_name")?,
        options: optional_text("options")?,
        execute_at: row.number("execute_at")?,
        status: standing.status,
        attempt: standing.attempt,
        last_error: standing.last_error,
        executed_at: standing.executed_at,
        created_at: row.number("created_at")?,
        updated_at: standing.finished_at.map_or_else(|| row.number("updated_at"), Ok)?,
        revision: row.number("revision")?,
        paused_at: standing.pause.as_ref().map(|pause| pause.at.as_micros()),
        pause_note: standing.pause.and_then(|pause| pause.note),
    })
}

/// Where the timer of a row is in a list.
pub fn cursor(row: &impl Row, sort: Sort) -> Result<Cursor, Failure> {
    let column = match sort {
        Sort::CreatedAt => "created_at",
        Sort::ExecuteAt => "execute_at",
    };
    Ok(Cursor { at: row.time(column)?, id: row.id()? })
}

/// What a list shows of a timer.
pub fn summary(row: &impl Row) -> Result<Summary, Failure> {
    let unreadable = |invalid: domain::Invalid| Failure::from(Unreadable(invalid.to_string()));
    let standing = Standing::of_row(row)?;
    let out_of_range = |_| Unreadable("revision is out of range".to_owned());
    Ok(Summary {
        id: row.id()?,
        namespace: Namespace::parse(row.text("namespace")?).map_err(unreadable)?,
        key: row.optional_text("key")?.map(Key::parse).transpose().map_err(unreadable)?,
        group: row.optional_text("group_name")?.map(Group::parse).transpose().map_err(unreadable)?,
        callback_kind: row.text("callback_type")?.to_owned(),
        correlation_id: row.optional_text("correlation_id")?.map(CorrelationId::parse).transpose().map_err(unreadable)?,
        execute_at: row.time("execute_at")?,
        status: standing.status,
        attempt: u32::try_from(standing.attempt).unwrap_or(0),
        last_error: standing.last_error,
        executed_at: standing.executed_at.map(Timestamp::from_micros),
        created_at: row.time("created_at")?,
        updated_at: standing.finished_at.map_or_else(|| row.time("updated_at"), |at| Ok(Timestamp::from_micros(at)))?,
        revision: u32::try_from(row.number("revision")?).map_err(out_of_range)?,
    })
}
