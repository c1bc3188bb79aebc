//! The first look at a table: can DynamoDB be reached, may we use it, and is the table one of ours.

use std::{sync::Arc, time::Duration};

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{
    Client,
    config::{Builder, Credentials, Region, SharedHttpClient, retry::RetryConfig, timeout::TimeoutConfig},
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use domain::Cause;
use tokio::sync::Semaphore;

use crate::{
    Address, DynamodbDatabase,
    database::{DEADLINE, REQUESTS_MAX},
    failure::{Verdict, cause, judge},
    table,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Where a DynamoDB Local is asked, which does not care.
const LOCAL_REGION: &str = "us-east-1";

/// Why a table cannot be used, with the error that it came from.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the region of DynamoDB is not known: name it in the URL, in AWS_REGION, or in a profile")]
    NoRegion,
    #[error("DynamoDB cannot be reached: {0}")]
    Unreachable(#[source] Cause),
    #[error("the DynamoDB table cannot be used: {0}")]
    Unfit(#[source] Cause),
}

impl DynamodbDatabase {
    /// Finds credentials, and looks at the table. Nothing is written; the table may be missing.
    pub async fn connect(address: &Address) -> Result<Self, OpenError> {
        let builder = match &address.endpoint {
            Some(endpoint) if endpoint.is_local => {
                tracing::warn!(
                    dynamodb.endpoint = endpoint.url,
                    "DynamoDB Local keeps acknowledged timers in one file of this machine: it is for trials"
                );
                local(address)
            }
            _ => on_aws(address).await?,
        };
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(DEADLINE).build();
        let mut builder = builder.timeout_config(timeouts).retry_config(RetryConfig::disabled());
        if let Some(endpoint) = &address.endpoint {
            builder = builder.endpoint_url(&endpoint.url);
        }
        let client = Client::from_conf(builder.build());
        let database = Self { client, table: address.table.clone(), permits: Arc::new(Semaphore::new(REQUESTS_MAX)) };
        database.look().await?;
        Ok(database)
    }

    async fn look(&self) -> Result<(), OpenError> {
        let table = table::describe(self).await.map_err(|error| match judge(&error) {
            Verdict::Unknown | Verdict::Throttled => OpenError::Unreachable(cause(error)),
            // Without a connection nothing was done either.
            Verdict::NotDone if error.as_service_error().is_none() => OpenError::Unreachable(cause(error)),
            _ => OpenError::Unfit(cause(error)),
        })?;
        let Some(table) = table else { return Ok(()) };
        if let Some(why) = table::misfit(&table) {
            return Err(OpenError::Unfit(why.into()));
        }
        if !table.replicas().is_empty() {
            tracing::warn!("the table is replicated to other regions: run this service in one of them only");
        }
        Ok(())
    }
}

/// Uses credentials that are made up: a DynamoDB Local wants some, and takes any.
fn local(address: &Address) -> Builder {
    let region = address.region.clone().unwrap_or_else(|| LOCAL_REGION.to_owned());
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region))
        .credentials_provider(Credentials::new("local", "local", None, None, "DynamoDB Local"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

/// Uses the credentials of the environment, of a profile, of a web identity, or of the container or machine.
async fn on_aws(address: &Address) -> Result<Builder, OpenError> {
    let http: SharedHttpClient =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
    if let Some(region) = &address.region {
        loader = loader.region(Region::new(region.clone()));
    }
    let shared = loader.load().await;
    if shared.region().is_none() {
        return Err(OpenError::NoRegion);
    }
    Ok(Builder::from(&shared))
}
