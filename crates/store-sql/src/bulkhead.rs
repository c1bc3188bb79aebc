//! Sessions with the database, and how a call is made over one.
//!
//! A bulkhead has a few sessions of its own, so that what one kind of caller does cannot take the sessions of another. A call
//! runs in a task of its own that is never canceled: a caller that goes away leaves no half-read answer and no open transaction
//! behind. Every call ends within its bulkhead's deadline; work that may take longer is made of several calls. A session that
//! broke or did not answer in time is dropped, never put back.

use std::{future::Future, sync::Arc, time::Duration};

use domain::Backoff;
use store::StoreResult;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    Driver, Failure, Verdict,
    session_pool::{PING_TIMEOUT, Session, SessionPool, answers},
};

const CONTENTION_RETRIES_MAX: u32 = 5;
/// The longest is never reached.
const CONTENTION_BACKOFF: Backoff = Backoff::new(Duration::from_millis(4), Duration::from_secs(1));

/// What is asked of the database: one or a few statements over one session. It must be safe to run again after
/// a failure that says so ([`Verdict::Contention`]).
pub trait Call<D: Driver>: Send + Sync + 'static {
    type Answer: Send + 'static;
    /// Whether something may have been done when the answer stays out.
    const WRITES: bool;
    /// Whether it may leave a transaction that has yet to be rolled back.
    const LEAVES_A_TRANSACTION: bool = false;

    fn run(&self, session: &mut D::Session) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// How much a bulkhead may take.
#[derive(Debug, Clone, Copy)]
pub struct BulkheadLimits {
    pub name: &'static str,
    pub sessions_max: usize,
    /// Longer than the server gives a statement: the server ends it before we give up on it, and then it is certain that nothing
    /// was done.
    pub deadline: Duration,
}

#[derive(Debug)]
pub struct Bulkhead<D: Driver> {
    session_pool: Arc<SessionPool<D>>,
    limits: BulkheadLimits,
}

impl<D: Driver> Clone for Bulkhead<D> {
    fn clone(&self) -> Self {
        Self { session_pool: Arc::clone(&self.session_pool), limits: self.limits }
    }
}

impl<D: Driver> Bulkhead<D> {
    /// Opens no session yet.
    pub fn new(driver: D, limits: BulkheadLimits) -> Self {
        Self { session_pool: Arc::new(SessionPool::new(driver, limits.sessions_max)), limits }
    }

    /// Makes the call, whatever becomes of its caller.
    pub async fn run<C: Call<D>>(&self, call: C) -> StoreResult<C::Answer> {
        self.attempt(call).await.map_err(|failure| failure.error)
    }

    /// The same, with all there is to know about a failure.
    pub async fn attempt<C: Call<D>>(&self, call: C) -> Result<C::Answer, Failure> {
        let answer = self.attempt_all(vec![call]).await?.pop();
        answer.ok_or_else(|| Failure::no_answer("the call was not made", C::WRITES))
    }

    /// Makes calls one after the other over one session, until one fails. Each has the whole of the bulkhead's deadline.
    pub async fn run_all<C: Call<D>>(&self, calls: Vec<C>) -> StoreResult<Vec<C::Answer>> {
        self.attempt_all(calls).await.map_err(|failure| failure.error)
    }

    async fn attempt_all<C: Call<D>>(&self, calls: Vec<C>) -> Result<Vec<C::Answer>, Failure> {
        let (answer, answered) = oneshot::channel();
        let bulkhead = self.clone();
        tokio::spawn(async move { bulkhead.serve(&calls, answer).await });
        let ended = || Failure::no_answer(format!("the task that spoke to {} ended", D::SERVER), C::WRITES);
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    async fn serve<C: Call<D>>(&self, calls: &[C], answer: oneshot::Sender<Result<Vec<C::Answer>, Failure>>) {
        let deadline = Instant::now() + self.limits.deadline;
        let mut session = match self.session_pool.acquire().await {
            Ok(session) => session,
            // Whatever the reason, nothing was sent.
            Err(refused) => return drop(answer.send(Err(Failure::new(Verdict::NotDone, refused.cause)))),
        };
        let outcome = self.make(calls, &mut session.connection, deadline).await;
        let is_broken = outcome.as_ref().is_err_and(|failure| failure.verdict.breaks_the_session());
        let is_settled = outcome.is_ok() && !C::LEAVES_A_TRANSACTION;
        // Before the answer: a caller that asks again because of it finds this session, or none that broke with it.
        if is_broken {
            self.discard(session);
            return drop(answer.send(outcome));
        }
        if is_settled {
            self.session_pool.put_back(session);
            return drop(answer.send(outcome));
        }
        drop(answer.send(outcome));
        // The driver rolls back with the next message, and what the transaction holds is held until then.
        if answers::<D>(&mut session.connection).await {
            self.session_pool.put_back(session);
        } else {
            self.discard(session);
        }
    }

    /// `deadline` is that of the first call, whose time began when it was asked for.
    async fn make<C: Call<D>>(
        &self,
        calls: &[C],
        session: &mut D::Session,
        mut deadline: Instant,
    ) -> Result<Vec<C::Answer>, Failure> {
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let answer = timeout_at(deadline, with_retries(call, session)).await;
            let late = || Failure::no_answer(format!("{} did not answer in time", D::SERVER), C::WRITES);
            answers.push(answer.map_err(|_| late())??);
            deadline = Instant::now() + self.limits.deadline;
        }
        Ok(answers)
    }

    fn discard(&self, session: Session<D::Session>) {
        self.session_pool.note_break();
        drop(session);
        metrics::counter!(D::SESSIONS_DISCARDED, "lane" => self.limits.name).increment(1);
    }

    pub async fn close(&self) {
        // Sessions that hang are dropped with the process.
        drop(timeout(PING_TIMEOUT, self.session_pool.close()).await);
    }
}

/// Runs the call again when other sessions were in its way.
async fn with_retries<D: Driver, C: Call<D>>(call: &C, session: &mut D::Session) -> Result<C::Answer, Failure> {
    let mut backoff = CONTENTION_BACKOFF;
    for _ in 0..CONTENTION_RETRIES_MAX {
        match call.run(session).await {
            Err(failure) if failure.verdict == Verdict::Contention => {
                metrics::counter!(D::CONTENTION).increment(1);
                sleep(backoff.failed()).await;
            }
            answer => return answer,
        }
    }
    call.run(session).await
}
