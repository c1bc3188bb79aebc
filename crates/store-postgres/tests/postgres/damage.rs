//! Databases in a state that nobody of us has made.

use domain::{Next, Status};
use store::Store;
use store_conformance::{NOW, timer};

use crate::{acquire_all, claim, everything_due, open};

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_should_not_be_there_holds_up_no_settlement() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let drafts: Vec<_> = (0..4).map(|number| timer("http://a.example/").numbered(number).build()).collect();
    let ids: Vec<_> = drafts.iter().map(|new| new.definition.id).collect();
    store.create(drafts).await.unwrap();
    let tenures = acquire_all(&store).await;
    let claimed = store.claim(&claim(7, &tenures), &everything_due(&store).await).await.unwrap();
    let stray = format!("INSERT INTO outcome (id, status, attempt, finished_at) VALUES ('{}', 'failed', 9, 0)", ids[2]);
    throwaway::postgres().query(&url, &stray);

    let settlements: Vec<_> = claimed.iter().map(|claimed| claimed.settle(Next::Completed { at: NOW })).collect();
    assert_eq!(store.settle(&settlements).await.unwrap(), [true; 4]);

    for id in ids {
        let timer = store.get(id).await.unwrap().unwrap();
        assert_eq!((timer.status, timer.attempt, timer.executed_at), (Status::Completed, 1, Some(NOW)));
    }
}
