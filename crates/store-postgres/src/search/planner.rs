//! What the planner believes.

use sqlx::{AssertSqlSafe, PgConnection};

use super::parameters::Parameters;
use crate::failure::{Failure, Step};

/// How many rows it expects of a statement.
pub async fn expected(session: &mut PgConnection, statement: &str, parameters: Parameters) -> Result<u64, Failure> {
    let text = AssertSqlSafe(format!("EXPLAIN {statement}"));
    let plan: Vec<String> = sqlx::query_scalar_with(text, parameters.values()?).fetch_all(session).await.or_not_done()?;
    Ok(plan.first().and_then(|line| expected_rows(line)).unwrap_or(0))
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
