//! What is due is claimed, called and completed.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    rc::Rc,
    time::Duration,
};

use hyper::Uri;
use tokio::{
    sync::{Notify, mpsc},
    task::spawn_local,
    time::sleep,
};

use crate::{
    Result, clock,
    queue::Queue,
    receiver::{Call, Receiver},
    store::{BATCH_MAX, Database, Session},
    timer::{Due, Timer},
};

/// While one batch is claimed or completed, the next one is sent.
const CLAIMERS: usize = 2;
const COMPLETERS: usize = 2;
const CLAIM_MAX: usize = 256;
/// How many timers are claimed and not called yet, or being called.
const IN_FLIGHT_MAX: usize = 1_024;
/// A clock that is set is noticed after this time.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// All that the thread of the calls knows.
pub struct Calls {
    pending: RefCell<BinaryHeap<Reverse<Due>>>,
    in_flight: Cell<usize>,
    /// A claim may be possible, or the next one earlier.
    changed: Notify,
    receivers: RefCell<HashMap<String, Rc<Receiver>>>,
    called: Queue<Due>,
}

impl Calls {
    pub fn new(pending: Vec<Due>) -> Rc<Self> {
        Rc::new(Self {
            pending: RefCell::new(pending.into_iter().map(Reverse).collect()),
            in_flight: Cell::new(0),
            changed: Notify::new(),
            receivers: RefCell::default(),
            called: Queue::new(),
        })
    }

    /// Calls what is pending and what is created, until nothing is created any more.
    pub async fn run(self: Rc<Self>, database: &Database, mut created: mpsc::Receiver<Vec<Due>>) -> Result<()> {
        for _ in 0..CLAIMERS {
            spawn_local(self.clone().claim(database.session().await?));
        }
        for _ in 0..COMPLETERS {
            spawn_local(self.clone().complete(database.session().await?));
        }
        while let Some(due) = created.recv().await {
            let earliest = self.earliest();
            self.pending.borrow_mut().extend(due.into_iter().map(Reverse));
            if self.earliest() != earliest {
                self.changed.notify_waiters();
            }
        }
        Ok(())
    }

    async fn claim(self: Rc<Self>, session: Session) {
        loop {
            let due = self.due().await;
            let claimed = due.len();
            let timers = session.claim(due).await;
            // Whatever is missing was canceled.
            for _ in timers.len()..claimed {
                self.leave_flight();
            }
            for timer in timers {
                self.clone().call(timer);
            }
        }
    }

    async fn complete(self: Rc<Self>, session: Session) {
        loop {
            session.complete(self.called.batch(BATCH_MAX, |_| 1).await).await;
        }
    }

    /// Waits until timers are due, and some may be in flight.
    async fn due(&self) -> Vec<Due> {
        loop {
            let mut wait = SLEEP_MAX;
            if self.in_flight.get() <= IN_FLIGHT_MAX - CLAIM_MAX {
                let now = clock::now_micros();
                let due = self.take_due(now);
                if !due.is_empty() {
                    self.in_flight.set(self.in_flight.get() + due.len());
                    return due;
                }
                let micros = self.earliest().map_or(u64::MAX, |due| (due.at - now).unsigned_abs());
                wait = SLEEP_MAX.min(Duration::from_micros(micros));
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    fn take_due(&self, now: i64) -> Vec<Due> {
        let mut pending = self.pending.borrow_mut();
        let mut due = Vec::new();
        while due.len() < CLAIM_MAX && pending.peek().is_some_and(|Reverse(next)| next.at <= now) {
            due.extend(pending.pop().map(|Reverse(next)| next));
        }
        due
    }

    fn earliest(&self) -> Option<Due> {
        self.pending.borrow().peek().map(|Reverse(due)| *due)
    }

    fn call(self: Rc<Self>, timer: Timer) {
        let url = timer.url.parse::<Uri>().ok().and_then(|url| Some((url.authority()?.to_string(), url)));
        // The API accepts no other URLs.
        let Some((authority, url)) = url else { return self.end(timer.due) };
        let receiver =
            self.receivers.borrow_mut().entry(authority).or_insert_with_key(|authority| Receiver::new(authority)).clone();
        receiver.call(Call { due: timer.due, url, body: timer.body.into() }, &self);
    }

    /// Notes that a call has ended, however it did.
    pub fn end(&self, due: Due) {
        self.leave_flight();
        self.called.push(due);
    }

    fn leave_flight(&self) {
        let left = self.in_flight.get() - 1;
        self.in_flight.set(left);
        if left == IN_FLIGHT_MAX - CLAIM_MAX {
            self.changed.notify_waiters();
        }
    }
}
