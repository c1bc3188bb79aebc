//! The server dies under load, or its answers get lost: what was acknowledged is there, and what was written is recognized.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use domain::{Clock, SystemClock};
use store::StoreError;
use store_conformance::outages;
use store_partitioned::{
    Change, Columns, Condition, Consistency, Database, Outcome, Partition, PartitionedStore, Positions, Version, Write,
};
use throwaway::Mongodb;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::{connect, server};

const KILLS: usize = 5;

async fn open(url: &str) -> PartitionedStore {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    PartitionedStore::open(connect(url).await, clock, 4).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server() {
    let server = Mongodb::start().unwrap();
    let store = Arc::new(open(&server.create_database()).await);
    let acknowledged = outages::what_was_acknowledged_survives_kills(store, KILLS, || {
        server.stop_immediate();
        server.start_again();
    })
    .await;
    println!("{KILLS} kills: {acknowledged} timers were acknowledged, and all of them are there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_changes_nothing_and_is_found_again() {
    let server = Mongodb::start().unwrap();
    let store = open(&format!("{}?serverSelectionTimeoutMS=500", server.create_database())).await;
    let (stop, start) = (|| server.stop_immediate(), || server.start_again());
    outages::a_server_that_is_away_changes_nothing_and_is_found_again(&store, stop, start).await;
}

// ── Lost answers ───────────────────────────────────────────────────────────────────────────────────────────────────

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    BeforeTheWrite,
    AfterTheWrite,
}

/// A way to the shared server that breaks the connection of the next write, once it is told to.
struct Proxy {
    url: String,
    next: Arc<Mutex<Option<Cut>>>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (_, database) =
            server().create_database().rsplit_once('/').map(|(at, name)| (at.to_owned(), name.to_owned())).unwrap();
        let next = Arc::new(Mutex::new(None));
        let armed = Arc::clone(&next);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let armed = Arc::clone(&armed);
                tokio::spawn(async move {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server().port())).await.unwrap();
                    // Either end may break the connection; that is all there is to it.
                    drop(pass(client, server, &armed).await);
                });
            }
        });
        Self { url: format!("mongodb://127.0.0.1:{port}/{database}"), next }
    }

    fn cut(&self, cut: Cut) {
        *self.next.lock().unwrap() = Some(cut);
    }
}

/// Passes on messages of the client, which waits for the answer of each, and the answers.
async fn pass(mut client: TcpStream, mut server: TcpStream, armed: &Mutex<Option<Cut>>) -> std::io::Result<()> {
    let (mut buffer, mut answer) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let length = tokio::select! {
            read = client.read(&mut buffer) => read?,
            read = server.read(&mut answer) => {
                let length = read?;
                if length == 0 {
                    return Ok(());
                }
                client.write_all(&answer[..length]).await?;
                continue;
            }
        };
        if length == 0 {
            return copy_bidirectional(&mut client, &mut server).await.map(drop);
        }
        let is_write = buffer[..length].windows(9).any(|word| word == b"bulkWrite");
        let cut = if is_write { armed.lock().unwrap().take() } else { None };
        if cut == Some(Cut::BeforeTheWrite) {
            return Ok(());
        }
        server.write_all(&buffer[..length]).await?;
        if cut == Some(Cut::AfterTheWrite) {
            let _answer_bytes = server.read(&mut answer).await?;
            return Ok(());
        }
    }
}

fn put(key: &[u8], condition: Condition, version: u128) -> Write {
    let change =
        Change::Put { version: Version(version), head: b"head".to_vec(), body: None, log: None, positions: Positions::default() };
    Write { key: key.to_vec(), condition, change, before: Positions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_read_back() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy.url).await, Partition::new("lost"));
    database.set_up().await.unwrap();

    proxy.cut(Cut::AfterTheWrite);
    let created =
        database.write(&partition, vec![put(b"a", Condition::Absent, 1), put(b"b", Condition::Absent, 2)]).await.unwrap();
    assert!(matches!(created.as_slice(), [Outcome::Applied, Outcome::Applied]), "{created:?}");

    proxy.cut(Cut::AfterTheWrite);
    let changed = vec![put(b"a", Condition::Is(Version(1)), 3), put(b"b", Condition::Is(Version(9)), 4)];
    let changed = database.write(&partition, changed).await.unwrap();
    assert!(matches!(changed[0], Outcome::Applied), "{changed:?}");
    assert!(matches!(&changed[1], Outcome::Failed(StoreError::Unknown(_))), "it cannot be told from one under way: {changed:?}");

    let keys = [b"a".to_vec(), b"b".to_vec()];
    let rows = database.read(&partition, &keys, Columns::HEAD, Consistency::Linearizable).await.unwrap();
    let versions: Vec<_> = rows.into_iter().map(|row| row.unwrap().version.0).collect();
    assert_eq!(versions, [3, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_never_arrived_is_unknown() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy.url).await, Partition::new("lost"));
    database.set_up().await.unwrap();
    proxy.cut(Cut::BeforeTheWrite);
    let outcomes = database.write(&partition, vec![put(b"a", Condition::Absent, 1)]).await.unwrap();
    assert!(matches!(outcomes.as_slice(), [Outcome::Failed(StoreError::Unknown(_))]), "{outcomes:?}");
    let rows = database.read(&partition, &[b"a".to_vec()], Columns::HEAD, Consistency::Linearizable).await.unwrap();
    assert_eq!(rows, [None]);
    assert!(matches!(
        database.write(&partition, vec![put(b"a", Condition::Absent, 1)]).await.unwrap().as_slice(),
        [Outcome::Applied]
    ));
}
