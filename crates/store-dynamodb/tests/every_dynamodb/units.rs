//! What the life of a timer costs in units of DynamoDB, as docs/book/src/run/stores.md works it out.

use domain::{Attempt, Clock, Next, SystemClock};
use store::Settlement;
use store_conformance::{Stage, millis, secs, timer};

use super::{conformance::OneTable, proxy::Proxy};

/// A timer of less than a kilobyte, which is called once: each item that is written is one unit, and so is each entry of an index that is
/// written or removed.
#[tokio::test]
async fn the_life_of_a_timer_costs_what_is_worked_out() {
    let proxy = Proxy::start().await;
    let stage = Stage::set(&OneTable::at(proxy.url.clone())).await;
    let now = SystemClock::default().now();
    proxy.spent();

    let draft = timer("https://shop.example/orders/1042/reminder").payload(r#"{"order":1042,"step":"reminder"}"#);
    let timer = stage.create(draft.created_at(now).due_at(now)).await;
    let created = proxy.spent();

    let claimed = stage.claim_one(&timer).await;
    let claim = proxy.spent();

    let attempt = Attempt {
        number: 1,
        started_at: now,
        took: millis(12),
        outcome: "delivered".to_owned(),
        status: Some(200),
        detail: None,
        node: None,
        answer: None,
    };
    let settlement = Settlement { attempt: Some(attempt), ..claimed.settle(Next::Completed { at: now }) };
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
    let settled = proxy.spent();

    let later = now.saturating_add(secs(60));
    assert_eq!(stage.store.purge(later, 100).await.unwrap(), 1);
    assert_eq!(stage.store.forget_events(later, 100).await.unwrap(), 1);
    let purged = proxy.spent();

    let steps = [("create", created), ("claim", claim), ("settle", settled), ("purge", purged)];
    for (step, spent) in steps {
        println!("{step}: {} write units, {} read units", spent.write, spent.read);
    }
    assert_eq!(steps.map(|(_, spent)| spent.write), [4.0, 3.0, 4.0, 5.0]);
}
