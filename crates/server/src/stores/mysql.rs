use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::Clock;
use store::Store;
use store_mysql::{MysqlOptions, MysqlStore, OpenError};

use super::{Database, StoreKind};
use crate::exit::Failure;

pub const KIND: StoreKind = StoreKind {
    schemes: &["mysql", "mariadb"],
    url_form: "mysql://USER:PASSWORD@HOST:PORT/NAME",
    from_url: |url| Ok(Arc::new(MysqlDatabase(MysqlOptions(url.to_owned())))),
    from_parts: |_| None,
    refuse_stray_parts: |_| Ok(()),
    public_causes: &[],
    metrics: store_mysql::METRICS,
};

/// How long a server may take to come up.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct MysqlDatabase(MysqlOptions);

#[async_trait]
impl Database for MysqlDatabase {
    fn describe(&self) -> String {
        format!("MySQL at {}", location(&self.0))
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let store = connect(&self.0, clock).await?;
        store.migrate().await.map_err(not_opened)?;
        Ok(Arc::new(store))
    }

    fn backup(&self, _file: &Path) -> Result<String, Failure> {
        Err(Failure::Configuration("MySQL has its own tool for this: mysqldump, or mariadb-dump.".into()))
    }

    fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
        Err(Failure::Configuration("MySQL has its own tool for this: mysql, or mariadb.".into()))
    }
}

async fn connect(options: &MysqlOptions, clock: &Arc<dyn Clock>) -> Result<MysqlStore, Failure> {
    const PAUSE: Duration = Duration::from_secs(1);
    let begun = clock.monotonic();
    loop {
        match MysqlStore::connect(options).await {
            Ok(store) => return Ok(store),
            Err(error @ OpenError::Unreachable(_)) if clock.monotonic() - begun < OPEN_TIMEOUT => {
                tracing::warn!("{error}; waiting for it");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(not_opened(error)),
        }
    }
}

fn not_opened(error: OpenError) -> Failure {
    match error {
        OpenError::Address(rule) => Failure::Configuration(format!("DATABASE_URL is wrong: {rule}.").into()),
        error => Failure::run(format!("{error}."), error),
    }
}

/// Where the database is, without credentials.
fn location(options: &MysqlOptions) -> String {
    let after_scheme = options.0.split_once("://").map_or("", |(_, rest)| rest);
    let address = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, address)| address);
    address.split('?').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_database_shows_no_credentials() {
        for (url, shown) in [
            ("mysql://u:secret@db:3306/timer?ssl-mode=required", "db:3306/timer"),
            ("mariadb://u:p@ss@db/timer", "db/timer"),
            ("mysql://db/timer?password=secret", "db/timer"),
        ] {
            assert_eq!(location(&MysqlOptions(url.to_owned())), shown);
        }
    }
}
