use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use tokio::sync::Semaphore;

/// No request takes longer: an endpoint that is cut off does not answer at all.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests one process has under way. The others wait in the order in which they came.
pub const REQUESTS_MAX: usize = 128;
/// How many rows of one call are written at once: DynamoDB has no limit, since each is a request of its own.
pub const ROWS_PER_WRITE: usize = 100;

/// A table of DynamoDB.
#[derive(Clone)]
pub struct DynamodbDatabase {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) permits: Arc<Semaphore>,
}
