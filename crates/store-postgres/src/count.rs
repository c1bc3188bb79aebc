//! How many timers there are of a kind: counted up to a limit, and beyond it as many as the planner believes.

use sqlx::{AssertSqlSafe, PgConnection, Postgres, postgres::PgArguments, query::QueryScalar};
use store::{COUNTED_MAX, Filter};

use store_sql::Call;

use crate::{
    failure::{Failure, Step},
    read::{NOT_THE_DEFAULT, definition_conditions, key_prefix_column, namespace_column, whereabouts},
    sessions::Sessions,
};

/// How many timers match.
pub struct Count {
    pub filter: Filter,
}

impl Count {
    fn whereabouts(&self) -> String {
        whereabouts(&self.filter, !self.filter.namespaces.is_empty() || self.filter.key_prefix.is_some())
    }

    /// Stops where it is clear that there are too many to be counted.
    fn capped(&self) -> String {
        let (whereabouts, conditions) = (self.whereabouts(), definition_conditions(&self.filter));
        let limit = COUNTED_MAX + 1;
        // Every timer is either due, paused or finished, and those rows are narrow. The finished ones first: after a crowd was fired,
        // `due` is a large file with little in it.
        let counted = if self.filter == Filter::default() {
            format!(
                "SELECT FROM outcome WHERE true{conditions} UNION ALL SELECT FROM due WHERE true{conditions}
                 UNION ALL SELECT FROM paused WHERE true{conditions}"
            )
        } else {
            format!("SELECT FROM {whereabouts}{conditions}")
        };
        format!("SELECT count(*) FROM ({counted} LIMIT {limit}) AS counted")
    }

    /// What the planner thinks of the whole. It takes each condition for one more that thins the rows out, so none is said twice.
    fn estimate(&self) -> String {
        let conditions = definition_conditions(&self.filter).replace(NOT_THE_DEFAULT, "");
        format!("EXPLAIN SELECT FROM {}{conditions}", self.whereabouts())
    }

    fn ask<'q, Answer>(&'q self, statement: String) -> QueryScalar<'q, Postgres, Answer, PgArguments>
    where
        (Answer,): for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>,
    {
        sqlx::query_scalar(AssertSqlSafe(statement)).bind(namespace_column(&self.filter)).bind(key_prefix_column(&self.filter))
    }
}

impl Call<Sessions> for Count {
    type Answer = store::Count;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<store::Count, Failure> {
        let counted: i64 = self.ask(self.capped()).fetch_one(&mut *session).await.or_not_done()?;
        let counted = counted.unsigned_abs();
        if counted <= COUNTED_MAX {
            return Ok(store::Count::exactly(counted));
        }
        let plan: Vec<String> = self.ask(self.estimate()).fetch_all(session).await.or_not_done()?;
        Ok(store::Count::about(plan.first().and_then(|line| expected_rows(line)).unwrap_or(counted)))
    }
}

/// How many rows a line of a plan expects: `Seq Scan on due t  (cost=0.00..7.28 rows=328 width=0)`.
fn expected_rows(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" rows=")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_tells_how_many_rows_it_expects() {
        let join = "Hash Join  (cost=16.05..33.33 rows=5000123 width=0)";
        for (line, rows) in
            [(join, Some(5_000_123)), ("Result  (cost=0.00..0.01 rows=1 width=4)", Some(1)), ("  Filter: true", None)]
        {
            assert_eq!(expected_rows(line), rows, "{line}");
        }
    }
}
