use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Clock, Invalid};
use store::Store;
use store_mongodb::{Address, MongodbDatabase, OpenError};
use store_partitioned::PartitionedStore;

use super::{
    DATABASE_URL, Database, StoreKind,
    open_deadline::{NotOpen, OpenDeadline},
};
use crate::exit::Failure;

pub const KIND: StoreKind = StoreKind {
    schemes: &["mongodb", "mongodb+srv"],
    url_form: "mongodb://USER:PASSWORD@HOST:PORT/NAME",
    from_url,
    from_parts: |_| None,
    refuse_stray_parts: |_| Ok(()),
    public_causes: &[],
    metrics: store_mongodb::METRICS,
};

/// How long a server may take to come up.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Mongodb {
    address: Address,
    location: String,
}

fn from_url(url: &str) -> Result<Arc<dyn Database>, Invalid> {
    let address = Address::parse(url).map_err(|rule| Invalid::new(DATABASE_URL, format!("is wrong: {rule}")))?;
    Ok(Arc::new(Mongodb { address, location: location(url) }))
}

#[async_trait]
impl Database for Mongodb {
    fn describe(&self) -> String {
        format!("MongoDB at {}", self.location)
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let deadline = OpenDeadline::new(clock, OPEN_TIMEOUT);
        loop {
            match open(&self.address, clock).await {
                Ok(store) => return Ok(store),
                Err(reason) => deadline.wait(reason).await?,
            }
        }
    }

    fn backup(&self, _file: &Path) -> Result<String, Failure> {
        Err(Failure::Configuration("MongoDB has its own tool for this: mongodump.".into()))
    }

    fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
        Err(Failure::Configuration("MongoDB has its own tool for this: mongorestore.".into()))
    }
}

async fn open(address: &Address, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, NotOpen> {
    let database = MongodbDatabase::connect(address).await.map_err(|error| match error {
        OpenError::Unreachable(_) => NotOpen::Yet(Failure::run(format!("{error}."), error)),
        OpenError::Address(rule) => NotOpen::Ever(Failure::Configuration(format!("DATABASE_URL is wrong: {rule}.").into())),
        OpenError::Unfit(_) => NotOpen::Ever(Failure::run(format!("{error}."), error)),
    })?;
    match PartitionedStore::open(Arc::new(database), Arc::clone(clock), address.shards()).await {
        Ok(store) => Ok(Arc::new(store)),
        // A replica set may have no primary yet.
        Err(error) => Err(NotOpen::Yet(Failure::run(format!("The MongoDB database could not be set up: {error}."), error))),
    }
}

/// Where the database is, without credentials.
fn location(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
    let place = after_scheme.split('?').next().unwrap_or_default();
    place.rsplit_once('@').map_or(place, |(_, place)| place).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_database_shows_no_credentials() {
        for (url, shown) in [
            ("mongodb://u:secret@a:27017,b/timer?replicaSet=rs0", "a:27017,b/timer"),
            ("mongodb+srv://u:secret@cluster.example.com/timer?authMechanismProperties=a@b", "cluster.example.com/timer"),
            ("mongodb://a/timer", "a/timer"),
        ] {
            assert_eq!(location(url), shown);
        }
    }

    #[test]
    fn a_wrong_parameter_is_named_and_no_credentials_are_shown() {
        let refused = from_url("mongodb://u:secret@a/timer?shards=none").err().map(|refused| refused.to_string());
        let refused = refused.unwrap_or_default();
        assert!(refused.contains("shards") && !refused.contains("secret"), "{refused}");
    }
}
