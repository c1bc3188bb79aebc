use std::{io::ErrorKind, time::Duration};

use mongodb::error::{Error, Result};

/// Gives up after a while, with the error of a connection that does not answer. The driver then closes the connection.
pub async fn within<T>(limit: Duration, work: impl IntoFuture<Output = Result<T>>) -> Result<T> {
    let late = |_| Err(Error::from(std::io::Error::from(ErrorKind::TimedOut)));
    tokio::time::timeout(limit, work.into_future()).await.unwrap_or_else(late)
}
