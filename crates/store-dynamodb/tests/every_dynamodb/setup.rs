//! What is found at the first look, and what people see of a table.

use std::sync::Arc;

use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ProjectionType, ScalarAttributeType};
use domain::{Clock, SystemClock};
use store::{Sharded, TimerStore};
use store_conformance::{secs, timer};
use store_dynamodb::{Address, DynamodbDatabase, OpenError};
use store_partitioned::{Change, Condition, Database, Outcome, Partition, PartitionedStore, Positions, Version, Write};

use super::{client, connect, key, server, table};

async fn open(url: &str, shards: u16) -> PartitionedStore {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    PartitionedStore::open(connect(url).await, clock, shards).await.unwrap()
}

#[tokio::test]
async fn a_table_keeps_the_number_of_shards_it_began_with() {
    let url = server().new_table();
    assert_eq!(open(&url, 8).await.shards(), 8);
    assert_eq!(open(&url, 16).await.shards(), 8);
}

#[tokio::test]
async fn a_table_is_made_as_it_is_described() {
    let url = server().new_table();
    connect(&url).await.set_up().await.unwrap();
    let table = client(server().port()).describe_table().table_name(table(&url)).send().await.unwrap().table.unwrap();
    assert_eq!(table.billing_mode_summary().and_then(|summary| summary.billing_mode()), Some(&BillingMode::PayPerRequest));
    let mut indexes: Vec<_> = table.local_secondary_indexes().iter().filter_map(|index| index.index_name()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["position-1", "position-2", "position-3", "position-4"]);
    for index in table.local_secondary_indexes() {
        assert_eq!(index.projection().and_then(|projection| projection.projection_type()), Some(&ProjectionType::KeysOnly));
    }
}

#[tokio::test]
async fn people_find_a_timer_by_its_id() {
    let url = server().new_table();
    let draft = timer("http://a.example/").namespace("shop").due_in(secs(1));
    let id = draft.id();
    open(&url, 4).await.create(vec![draft.build()]).await.unwrap();
    let partition = format!("timers-{}", id.shard(4).0);
    let get = client(server().port()).get_item().table_name(table(&url)).set_key(Some(key(&partition, id.as_uuid().as_bytes())));
    assert!(get.send().await.unwrap().item.is_some());
}

#[tokio::test]
async fn the_table_of_another_program_is_left_alone() {
    let url = server().new_table();
    let id = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S).build().unwrap();
    let create = client(server().port())
        .create_table()
        .table_name(table(&url))
        .attribute_definitions(id)
        .key_schema(KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap())
        .billing_mode(BillingMode::PayPerRequest);
    create.send().await.unwrap();
    let refused = DynamodbDatabase::connect(&Address::parse(&url).unwrap()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Unfit(_)), "{refused}");
}

#[tokio::test]
async fn a_row_that_is_too_large_is_refused_by_a_sentence_and_hinders_no_other() {
    let database = connect(&server().url("driver")).await;
    database.set_up().await.unwrap();
    let put = |key: u8, body: Vec<u8>| {
        let change = Change::Put {
            version: Version(u128::from(key)),
            head: Vec::new(),
            body: Some(body),
            log: None,
            positions: Positions::default(),
        };
        Write { key: vec![key], condition: Condition::Any, change, before: Positions::default() }
    };
    // What does not compress: the digits of a number that has no pattern.
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    let random = |bytes: usize, byte: &mut dyn FnMut() -> u8| (0..bytes).map(|_| byte()).collect::<Vec<u8>>();
    let (large, too_large) = (random(350_000, &mut byte), random(500_000, &mut byte));
    let outcomes = database.write(&Partition::new("large"), vec![put(1, too_large), put(2, large)]).await.unwrap();
    match outcomes.as_slice() {
        [Outcome::Failed(error), Outcome::Applied] => {
            assert_eq!(error.kind(), "full");
            assert!(error.to_string().contains("no item of DynamoDB has more than 400 KB"), "{error}");
        }
        outcomes => panic!("{outcomes:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let url = format!("dynamodb://us-east-1/timer?endpoint=http://127.0.0.1:{}", throwaway::free_port());
    let refused = DynamodbDatabase::connect(&Address::parse(&url).unwrap()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Unreachable(_)), "{refused}");
}
