//! The throughput of load client and sink without a service between them. A result near this ceiling tells more about them than
//! about the service.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{client::Connection, error::Failed, record::Ceiling, requests, session::Session};

/// Sends `posts` directly to the sink.
pub async fn measure(session: &Session, connections: usize, posts: u64) -> Result<Ceiling, Failed> {
    let (address, round) = session.begin_without_service(posts)?;
    let host = address.to_string();
    let failed = |error: std::io::Error| Failed::Run(format!("the receiver at {address} cannot be reached: {error}."));
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(address).await.map_err(failed)?;
        let (next, host, round) = (next.clone(), host.clone(), round.ledger.round());
        workers.push(async move {
            let mut request = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= posts {
                    return Ok(());
                }
                requests::call(&host, round, number, &mut request);
                connection.exchange(&request).await?;
            }
        });
    }
    let meter = session.meter();
    let began = session.clock.monotonic();
    let tasks: Vec<_> = workers.into_iter().map(tokio::spawn).collect();
    for task in tasks {
        task.await.map_err(|error| Failed::Run(format!("the load client failed: {error}.")))?.map_err(failed)?;
    }
    let seconds = session.clock.monotonic().saturating_sub(began).as_secs_f64();
    let usage = meter.stop().await;
    Ok(Ceiling { connections, posts_per_second: round.ledger.arrived() as f64 / seconds, foreign_share: usage.foreign_share })
}
