//! What holds on a real DynamoDB Local: the contract of drivers, the contract of stores, and what is this database's own.
//!
//! ```text
//! scripts/dynamodb.sh --fetch && cargo test --package store-dynamodb --features sdk --test every_dynamodb
//! ```
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

mod conformance;
mod driver;
mod outages;
mod proxy;
mod setup;
mod units;

use std::{collections::HashMap, sync::Arc};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    primitives::Blob,
    types::AttributeValue,
};
use store_dynamodb::{Address, DynamodbDatabase};
use throwaway::DynamoDb;

/// The server that all tests share.
fn server() -> &'static DynamoDb {
    throwaway::dynamodb().expect("there is no DynamoDB Local here: run scripts/dynamodb.sh --fetch")
}

/// The table at `url`, not set up.
async fn connect(url: &str) -> Arc<DynamodbDatabase> {
    Arc::new(DynamodbDatabase::connect(&Address::parse(url).unwrap()).await.unwrap())
}

/// The table of a URL, as the SDK names it.
fn table(url: &str) -> &str {
    url.rsplit_once('/').map_or(url, |_| url.split('?').next().unwrap()).rsplit('/').next().unwrap()
}

/// A way to the server past the driver.
fn client(port: u16) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(format!("http://127.0.0.1:{port}"))
        .credentials_provider(Credentials::new("local", "local", None, None, "a test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

/// The key of an item, as the driver writes it.
fn key(partition: &str, key: &[u8]) -> HashMap<String, AttributeValue> {
    let (partition, key) = (AttributeValue::S(partition.to_owned()), AttributeValue::B(Blob::new(key)));
    HashMap::from([("p".to_owned(), partition), ("k".to_owned(), key)])
}
