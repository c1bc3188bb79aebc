//! Requests, as many at once as there are permits, and again for a moment while DynamoDB says that there are too many.

use std::{error::Error, time::Duration};

use aws_sdk_dynamodb::error::ProvideErrorMetadata;

use crate::{
    database::DynamodbDatabase,
    failure::{Failed, Verdict, judge},
};

/// How often a request is made that DynamoDB throttles. Then the caller is told, and slows down what it does.
const TRIES_MAX: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Makes a request under a permit. The permit is free while a throttled request waits for its next try.
pub async fn request<T, E, F>(database: &DynamodbDatabase, send: impl Fn() -> F) -> Result<T, Failed<E>>
where
    E: ProvideErrorMetadata + Error + 'static,
    F: Future<Output = Result<T, Failed<E>>>,
{
    for tried in 1.. {
        // The semaphore is never closed; without a permit the request would be made all the same.
        let permit = database.permits.acquire().await.ok();
        let answer = send().await;
        drop(permit);
        match answer {
            Err(error) if judge(&error) == Verdict::Throttled => {
                metrics::counter!("timer_dynamodb_throttled_total").increment(1);
                if tried == TRIES_MAX {
                    return Err(error);
                }
                pause(tried).await;
            }
            answer => return answer,
        }
    }
    send().await
}

/// Longer with every try, and never the same for two that were throttled together.
pub async fn pause(tried: u32) {
    let longest = FIRST_PAUSE * 2_u32.saturating_pow(tried.saturating_sub(1));
    tokio::time::sleep(longest.mul_f64(rand::random_range(0.5..=1.0))).await;
}
