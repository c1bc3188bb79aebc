use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::TimerId;
use store::{StoreError, StoreResult};
use store_partitioned::{Change, Columns, Consistency, Database, Memory, Outcome, Partition, Range, Row, Write};
use tokio::time::Instant;

use crate::{audit::Audit, dice::Dice};

/// Of a thousand calls, so many go wrong in each way.
const FAULT_PER_MILLE: u64 = 8;

/// The database as one node reaches it.
pub struct Network {
    pub memory: Memory,
    pub dice: Mutex<Dice>,
    pub audit: Arc<Audit>,
    pub is_well: Arc<AtomicBool>,
    pub has_faults: bool,
    pub latency_millis_max: u64,
    /// Until then the process stands still.
    pub paused_until: Arc<Mutex<Instant>>,
    /// Nothing gets through any more: the process is dead.
    pub is_dead: Arc<AtomicBool>,
}

/// What goes wrong with a write.
enum Fault {
    NotDone,
    DoneUnknown,
    /// It is done after its caller has given up.
    Late(Duration),
}

impl Network {
    /// Waits as long as the way takes, and while the process stands still.
    pub async fn travel(&self) {
        let takes = self.dice.lock().unwrap().millis(0, self.latency_millis_max);
        tokio::time::sleep(takes).await;
        loop {
            if self.is_dead.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let until = *self.paused_until.lock().unwrap();
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn is_faulty(&self) -> bool {
        self.has_faults && !self.is_well.load(Ordering::Relaxed)
    }

    fn fault(&self) -> Option<Fault> {
        if !self.is_faulty() {
            return None;
        }
        let mut dice = self.dice.lock().unwrap();
        let (roll, late) = (dice.below(1_000), dice.millis(1, 6_000));
        match roll / FAULT_PER_MILLE {
            0 => Some(Fault::NotDone),
            1 => Some(Fault::DoneUnknown),
            2 => Some(Fault::Late(late)),
            _ => None,
        }
    }

    async fn reach(&self) -> StoreResult<()> {
        self.travel().await;
        let fails = self.is_faulty() && self.dice.lock().unwrap().per_mille(FAULT_PER_MILLE);
        if fails { Err(StoreError::Unavailable("planned".into())) } else { Ok(()) }
    }
}

/// Writes, and tells the audit of the claims that were written.
async fn apply(memory: &Memory, audit: &Audit, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
    let outcomes = memory.write(partition, writes.clone()).await?;
    let Some(shard) = partition.as_str().strip_prefix("timers-").and_then(|shard| shard.parse::<u16>().ok()) else {
        return Ok(outcomes);
    };
    let keys = [shard.to_be_bytes().to_vec()];
    let row = memory.read(&Partition::new("shards"), &keys, Columns::HEAD, Consistency::Linearizable).await?.remove(0);
    let json = |head: &[u8]| serde_json::from_slice::<serde_json::Value>(head).unwrap();
    let epoch = row.map(|row| json(&row.head)["epoch"].as_i64().unwrap());
    for (write, outcome) in writes.iter().zip(&outcomes) {
        if let (Change::Put { head, .. }, Outcome::Applied) = (&write.change, outcome) {
            let held = &json(head)["held"];
            let id = TimerId::from_uuid(uuid::Uuid::from_slice(&write.key).unwrap());
            if let (Some(token), Some(claimed)) = (held["token"].as_i64(), held["epoch"].as_i64()) {
                audit.with(|books| books.written(id, token, epoch != Some(claimed)));
            }
        }
    }
    Ok(outcomes)
}

#[async_trait]
impl Database for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    async fn set_up(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        self.reach().await?;
        let answer = self.memory.read(partition, keys, columns, consistency).await;
        self.travel().await;
        answer
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        self.reach().await?;
        let answer = self.memory.range(partition, range, columns, consistency).await;
        self.travel().await;
        answer
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        self.travel().await;
        let unknown = || {
            self.audit.with(|books| books.unknown += 1);
            Err(StoreError::Unknown("planned".into()))
        };
        match self.fault() {
            None => {
                let outcomes = apply(&self.memory, &self.audit, partition, writes).await;
                self.travel().await;
                outcomes
            }
            Some(Fault::NotDone) => Err(StoreError::Unavailable("planned".into())),
            Some(Fault::DoneUnknown) => {
                apply(&self.memory, &self.audit, partition, writes).await?;
                self.travel().await;
                unknown()
            }
            Some(Fault::Late(late)) => {
                let (memory, audit, partition) = (self.memory.clone(), Arc::clone(&self.audit), partition.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    let _ = apply(&memory, &audit, &partition, writes).await;
                });
                unknown()
            }
        }
    }

    async fn ping(&self) -> StoreResult<()> {
        self.reach().await
    }
}
