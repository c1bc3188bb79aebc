//! What is remembered of attempts: written by the settlement that ends one, read by clients that ask what happened.

use domain::{Attempt, Span, TimerId, Timestamp, limits};
use sqlx::{
    PgConnection, Postgres, Row,
    postgres::{PgArguments, PgRow},
    query::QueryScalar,
};
use store::Unreadable;
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::text_column,
};

/// The attempts of a batch of settlements, one array for each column; all of them NULL where a settlement carries none.
#[derive(Debug, Default)]
pub struct AttemptColumns {
    carried: usize,
    numbers: Vec<Option<i32>>,
    started_ats: Vec<Option<i64>>,
    tooks: Vec<Option<i64>>,
    outcomes: Vec<Option<String>>,
    statuses: Vec<Option<i32>>,
    details: Vec<Option<String>>,
    answers: Vec<Option<String>>,
}

impl AttemptColumns {
    pub fn push(&mut self, attempt: Option<&Attempt>) {
        self.carried += usize::from(attempt.is_some());
        self.numbers.push(attempt.map(|attempt| i32::try_from(attempt.number).unwrap_or(i32::MAX)));
        self.started_ats.push(attempt.map(|attempt| attempt.started_at.as_micros()));
        self.tooks.push(attempt.map(|attempt| attempt.took.as_micros()));
        self.outcomes.push(attempt.map(|attempt| text_column(&attempt.outcome)));
        self.statuses.push(attempt.and_then(|attempt| attempt.status).map(i32::from));
        self.details.push(attempt.and_then(|attempt| attempt.detail.as_deref()).map(text_column));
        self.answers.push(attempt.and_then(Attempt::kept_text));
    }

    pub const fn is_empty(&self) -> bool {
        self.carried == 0
    }

    /// Binds the arrays and how many attempts are kept, if there are any.
    pub fn bind_to<'q, Answer>(
        &'q self,
        query: QueryScalar<'q, Postgres, Answer, PgArguments>,
    ) -> QueryScalar<'q, Postgres, Answer, PgArguments> {
        if self.is_empty() {
            return query;
        }
        query
            .bind(&self.numbers)
            .bind(&self.started_ats)
            .bind(&self.tooks)
            .bind(&self.outcomes)
            .bind(&self.statuses)
            .bind(&self.details)
            .bind(i64::try_from(limits::ATTEMPTS_KEPT).unwrap_or(i64::MAX))
            .bind(&self.answers)
    }
}

pub(crate) const ATTEMPTS: &str = sql!("sql/attempts.sql");

/// What is remembered of one timer.
pub struct Attempts {
    pub id: TimerId,
}

impl Call<Connector> for Attempts {
    type Answer = Vec<Attempt>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Attempt>, Failure> {
        let rows = sqlx::query(ATTEMPTS).bind(self.id.as_uuid()).fetch_all(session).await.or_not_done()?;
        rows.iter().map(attempt).collect()
    }
}

pub(crate) fn attempt(row: &PgRow) -> Result<Attempt, Failure> {
    let out_of_range = |_| Unreadable("a number of an attempt is out of range".to_owned());
    let status: Option<i32> = row.try_get("status").or_not_done()?;
    let kept: Option<String> = row.try_get("answer").or_not_done()?;
    let attempt = Attempt {
        number: u32::try_from(row.try_get::<i32, _>("number").or_not_done()?).map_err(out_of_range)?,
        started_at: Timestamp::from_micros(row.try_get("started_at").or_not_done()?),
        took: Span::from_micros_clamped(row.try_get("took").or_not_done()?),
        outcome: row.try_get("outcome").or_not_done()?,
        status: status.map(u16::try_from).transpose().map_err(out_of_range)?,
        detail: row.try_get("detail").or_not_done()?,
        node: None,
        answer: None,
    };
    Ok(attempt.with_kept(kept.as_deref()))
}
