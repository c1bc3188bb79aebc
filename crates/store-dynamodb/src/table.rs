//! The table: made where there is none, and looked at where there is one.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::{BuildError, SdkError},
    operation::{create_table::CreateTableError, describe_table::DescribeTableError},
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, LocalSecondaryIndex, LocalSecondaryIndexDescription,
        Projection, ProjectionType, ScalarAttributeType, TableDescription, TableStatus,
    },
};
use domain::Cause;
use store::{StoreError, StoreResult};
use store_partitioned::Index;
use tokio::time::{sleep, timeout};

use crate::{
    database::DynamodbDatabase,
    failure::{Failed, unavailable},
    item::{KEY, PARTITION, attribute, index_name},
};

/// DynamoDB takes some seconds to make a table.
const SET_UP_DEADLINE: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// What is known of the table; `None` where there is none.
pub async fn describe(database: &DynamodbDatabase) -> Result<Option<TableDescription>, Failed<DescribeTableError>> {
    match database.client.describe_table().table_name(&database.table).send().await {
        Ok(answer) => Ok(answer.table),
        Err(SdkError::ServiceError(refusal)) if refusal.err().is_resource_not_found_exception() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why a table cannot be used, in a sentence; `None` where it can.
pub fn misfit(table: &TableDescription) -> Option<String> {
    let keys: Vec<_> = table.key_schema().iter().map(KeySchemaElement::attribute_name).collect();
    let has_index = |index: Index| {
        let named = |found: &&LocalSecondaryIndexDescription| found.index_name() == Some(index_name(index));
        let found = table.local_secondary_indexes().iter().find(named);
        let keys = |found: &LocalSecondaryIndexDescription| {
            found.key_schema().iter().map(KeySchemaElement::attribute_name).eq([PARTITION, attribute(index)])
        };
        found.is_some_and(keys)
    };
    let is_ours = keys == [PARTITION, KEY] && Index::ALL.into_iter().all(has_index);
    (!is_ours).then(|| "it has other keys and indexes than a table of this service: name one that is not there yet".to_owned())
}

pub async fn set_up(database: &DynamodbDatabase) -> StoreResult<()> {
    let late = |_| Err(StoreError::Unavailable("DynamoDB takes too long to make the table".into()));
    timeout(SET_UP_DEADLINE, make(database)).await.unwrap_or_else(late)
}

async fn make(database: &DynamodbDatabase) -> StoreResult<()> {
    loop {
        match describe(database).await.map_err(unavailable)? {
            None => create(database).await?,
            Some(table) if matches!(table.table_status(), Some(TableStatus::Active | TableStatus::Updating)) => {
                return match misfit(&table) {
                    Some(why) => Err(StoreError::Unavailable(why.into())),
                    None => Ok(()),
                };
            }
            Some(_) => sleep(POLL_INTERVAL).await,
        }
    }
}

async fn create(database: &DynamodbDatabase) -> StoreResult<()> {
    let unfit = |error: BuildError| StoreError::Unavailable(Cause::of(error));
    let mut create = database
        .client
        .create_table()
        .table_name(&database.table)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(true)
        .set_key_schema(Some(key_schema(KEY).map_err(unfit)?))
        .attribute_definitions(definition(PARTITION, ScalarAttributeType::S).map_err(unfit)?)
        .attribute_definitions(definition(KEY, ScalarAttributeType::B).map_err(unfit)?);
    for index in Index::ALL {
        create = create
            .attribute_definitions(definition(attribute(index), ScalarAttributeType::B).map_err(unfit)?)
            .local_secondary_indexes(local_index(index).map_err(unfit)?);
    }
    match create.send().await {
        Ok(_) => Ok(()),
        // Another process is making it.
        Err(SdkError::ServiceError(refusal)) if matches!(refusal.err(), CreateTableError::ResourceInUseException(_)) => Ok(()),
        Err(error) => Err(unavailable(error)),
    }
}

fn key_schema(sorted_by: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    let element = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    Ok(vec![element(PARTITION, KeyType::Hash)?, element(sorted_by, KeyType::Range)?])
}

fn definition(name: &str, kind: ScalarAttributeType) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()
}

/// Keys only: what else were in it would be written, and paid, a second time.
fn local_index(index: Index) -> Result<LocalSecondaryIndex, BuildError> {
    LocalSecondaryIndex::builder()
        .index_name(index_name(index))
        .set_key_schema(Some(key_schema(attribute(index))?))
        .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
        .build()
}
