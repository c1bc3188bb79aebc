//! Sessions with the database, and how a call is made over one.
//!
//! A bulkhead has a few sessions of its own, so that what one kind of caller does cannot take the sessions of another. A call runs in
//! a task that nobody cancels: a caller who goes away leaves no half-read answer and no open transaction behind. Every call
//! ends within its bulkhead's deadline; work that may take longer is made of several calls. A session that broke or did not answer in
//! time is dropped, never put back.

use std::{future::Future, sync::Arc, time::Duration};

use sqlx::{PgConnection, postgres::PgConnectOptions};
use store::StoreResult;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    failure::Failure,
    options::KEYED_STATEMENTS,
    session_pool::{PING_TIMEOUT, Session, SessionPool, answers},
};

const CONTENTION_RETRIES_MAX: u32 = 5;
const CONTENTION_PAUSE: Duration = Duration::from_millis(4);

/// What is asked of the database: one or a few statements over one session. It must be safe to run again after
/// a failure that says so ([`Failure::is_contention`]).
pub trait Call: Send + Sync + 'static {
    type Answer: Send + 'static;
    /// Whether something may have been done when the answer stays out.
    const WRITES: bool;
    /// Whether it may leave a transaction that has yet to be rolled back.
    const LEAVES_A_TRANSACTION: bool = false;

    fn run(&self, session: &mut PgConnection) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// How much a bulkhead may take.
#[derive(Debug, Clone, Copy)]
pub struct LaneLimits {
    pub name: &'static str,
    pub sessions_max: usize,
    /// The server ends a statement before we give up on it: then it is certain that nothing was done.
    pub statement_timeout: Duration,
    pub deadline: Duration,
    /// Whether its statements reach every row through its key, see [`KEYED_STATEMENTS`].
    pub is_keyed: bool,
}

#[derive(Debug, Clone)]
pub struct Bulkhead {
    session_pool: Arc<SessionPool>,
    limits: LaneLimits,
}

impl Bulkhead {
    /// Opens no session yet.
    pub fn new(options: &PgConnectOptions, limits: LaneLimits) -> Self {
        let statement_timeout = format!("{}ms", limits.statement_timeout.as_millis());
        let mut options = options.clone().options([("statement_timeout", statement_timeout)]);
        if limits.is_keyed {
            options = options.options(KEYED_STATEMENTS);
        }
        Self { session_pool: Arc::new(SessionPool::new(options, limits.sessions_max)), limits }
    }

    /// Makes the call, whatever becomes of the one who asked for it.
    pub async fn run<C: Call>(&self, call: C) -> StoreResult<C::Answer> {
        self.attempt(call).await.map_err(|failure| failure.error)
    }

    /// The same, with all there is to know about a failure.
    pub async fn attempt<C: Call>(&self, call: C) -> Result<C::Answer, Failure> {
        let answer = self.attempt_all(vec![call]).await?.pop();
        answer.ok_or_else(|| Failure::no_answer("the call was not made", C::WRITES))
    }

    /// Makes calls one after the other over one session, until one fails. Each has the whole of the bulkhead's deadline.
    pub async fn run_all<C: Call>(&self, calls: Vec<C>) -> StoreResult<Vec<C::Answer>> {
        self.attempt_all(calls).await.map_err(|failure| failure.error)
    }

    async fn attempt_all<C: Call>(&self, calls: Vec<C>) -> Result<Vec<C::Answer>, Failure> {
        let (answer, answered) = oneshot::channel();
        let bulkhead = self.clone();
        tokio::spawn(async move { bulkhead.serve(&calls, answer).await });
        answered.await.unwrap_or_else(|_| Err(Failure::no_answer("the task that spoke to PostgreSQL ended", C::WRITES)))
    }

    async fn serve<C: Call>(&self, calls: &[C], answer: oneshot::Sender<Result<Vec<C::Answer>, Failure>>) {
        let deadline = Instant::now() + self.limits.deadline;
        let mut session = match self.session_pool.acquire().await {
            Ok(session) => session,
            Err(error) => return drop(answer.send(Err(Failure::no_session(error)))),
        };
        let outcome = self.make(calls, &mut session.connection, deadline).await;
        let is_broken = outcome.as_ref().is_err_and(|failure| failure.session_is_broken);
        let is_settled = outcome.is_ok() && !C::LEAVES_A_TRANSACTION;
        // Before the answer: whoever asks again because of it finds this session, or none that broke with it.
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
        if answers(&mut session.connection).await {
            self.session_pool.put_back(session);
        } else {
            self.discard(session);
        }
    }

    /// `deadline` is that of the first call, whose time began when it was asked for.
    async fn make<C: Call>(
        &self,
        calls: &[C],
        session: &mut PgConnection,
        mut deadline: Instant,
    ) -> Result<Vec<C::Answer>, Failure> {
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let answer = timeout_at(deadline, with_patience(call, session)).await;
            answers.push(answer.map_err(|_| Failure::no_answer("PostgreSQL did not answer in time", C::WRITES))??);
            deadline = Instant::now() + self.limits.deadline;
        }
        Ok(answers)
    }

    fn discard(&self, session: Session) {
        self.session_pool.note_break();
        drop(session);
        metrics::counter!("timer_postgres_sessions_discarded_total", "lane" => self.limits.name).increment(1);
    }

    pub async fn close(&self) {
        // Sessions that hang are dropped with the process.
        drop(timeout(PING_TIMEOUT, self.session_pool.close()).await);
    }
}

/// Runs the call again when others were in its way.
async fn with_patience<C: Call>(call: &C, session: &mut PgConnection) -> Result<C::Answer, Failure> {
    let mut pause = CONTENTION_PAUSE;
    for _ in 0..CONTENTION_RETRIES_MAX {
        match call.run(session).await {
            Err(failure) if failure.is_contention => {
                metrics::counter!("timer_postgres_contention_total").increment(1);
                sleep(pause).await;
                pause *= 2;
            }
            answer => return answer,
        }
    }
    call.run(session).await
}
