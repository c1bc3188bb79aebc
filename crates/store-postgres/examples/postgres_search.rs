//! How long the first page of a search takes, on a database that is filled already:
//! `DATABASE_URL=postgres://… cargo run --release -p store-postgres --example postgres_search -- '{"status":["failed"]}' …`.
//!
//! One line for each filter and order: filter, order, milliseconds (the best and the worst of five), timers found, timers looked at,
//! whether the page is complete, and how many match with how long that took.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::time::Duration;

use domain::{Clock, SystemClock};
use store::{Filter, ListQuery, Sort, TimerStore};
use store_postgres::{PostgresOptions, PostgresStore};

const TOTAL_BUDGET: Duration = Duration::from_millis(8);

#[tokio::main]
async fn main() {
    let url = std::env::var("DATABASE_URL").unwrap();
    let store = PostgresStore::connect(&PostgresOptions::Url(url)).await.unwrap();
    let clock = SystemClock::default();
    println!("| filter | sort | first page, ms | found | scanned | complete | total, ms |\n|---|---|---|---|---|---|---|");
    for json in std::env::args().skip(1) {
        let filter: Filter = serde_json::from_str(&json).unwrap();
        for sort in [Sort::CreatedAt, Sort::ExecuteAt] {
            let query = ListQuery { filter: filter.clone(), sort, ..ListQuery::default() };
            let mut took = Vec::new();
            let mut page = store.list(&query).await.unwrap();
            for _ in 0..5 {
                let started = clock.monotonic();
                page = store.list(&query).await.unwrap();
                took.push((clock.monotonic() - started).as_secs_f64() * 1_000.0);
            }
            took.sort_by(f64::total_cmp);
            let started = clock.monotonic();
            let count = store.count(&filter, TOTAL_BUDGET).await.unwrap();
            let counted = (clock.monotonic() - started).as_secs_f64() * 1_000.0;
            println!(
                "| `{json}` | {sort:?} | {:.1}–{:.1} | {} | {} | {} | {}{} in {counted:.1} |",
                took[0],
                took[4],
                page.timers.len(),
                page.scanned,
                page.complete,
                if count.is_estimate { "about " } else { "" },
                count.timers,
            );
        }
    }
}
