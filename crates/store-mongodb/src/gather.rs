//! Calls gathered into commands: what waits while commands are under way goes together with the next one.
//!
//! ```text
//!   callers ─▶ queue ─▶ some tasks: each takes what waits, up to what one command carries, and again until nothing does
//! ```
//!
//! A store asks each of its shards by itself, for a few rows each. To MongoDB the shards are parts of one collection, and a command costs it
//! about as much for one row as for dozens: its journal is written for each.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use crate::DEADLINE;

/// What a caller is told that waited for longer than a command may take.
pub const LATE: &str = "MongoDB does not answer: the call waited for other calls, and was not sent";

/// A call that waits for a command.
pub trait Job: Send + 'static {
    /// Whether a command can carry this one beside those that it has already, which have `rows` rows and `bytes` bytes in all.
    fn fits(&self, first: &Self, rows: usize, bytes: usize) -> bool;

    fn rows(&self) -> usize;

    fn bytes(&self) -> usize;

    /// Its caller does not wait for it any more.
    fn is_given_up(&self) -> bool;

    /// Tells its caller that it waited for too long, and that nothing was done.
    fn give_up(self);
}

struct Waiting<J> {
    /// Each with its deadline.
    jobs: VecDeque<(Instant, J)>,
    tasks: usize,
}

/// The calls of one kind, of all callers of this process.
pub struct Queue<J> {
    waiting: Mutex<Waiting<J>>,
    tasks_max: usize,
}

impl<J: Job> Queue<J> {
    /// Makes a queue that has at most `tasks_max` commands under way at once.
    pub const fn new(tasks_max: usize) -> Self {
        Self { waiting: Mutex::new(Waiting { jobs: VecDeque::new(), tasks: 0 }), tasks_max }
    }

    /// Adds a job, and a task that works on what waits where there may be one more.
    pub fn join<F>(self: &Arc<Self>, job: J, work: impl Fn(Vec<J>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send,
    {
        let mut waiting = self.waiting();
        waiting.jobs.push_back((Instant::now() + DEADLINE, job));
        if waiting.tasks < self.tasks_max {
            waiting.tasks += 1;
            drop(waiting);
            // Sent by a task of its own: a caller that gives up must not strand the calls that go with it.
            let mut task = Task { queue: Arc::clone(self), is_over: false };
            tokio::spawn(async move {
                while let Some(jobs) = task.next() {
                    work(jobs).await;
                }
            });
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Task<J: Job> {
    queue: Arc<Queue<J>>,
    is_over: bool,
}

/// Should a task end before its time, the next caller starts another.
impl<J: Job> Drop for Task<J> {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.waiting().tasks -= 1;
        }
    }
}

impl<J: Job> Task<J> {
    /// What the next command carries: those that waited longest. `None` ends the task.
    fn next(&mut self) -> Option<Vec<J>> {
        let mut late = Vec::new();
        let taken = {
            let mut waiting = self.queue.waiting();
            let taken = take(&mut waiting.jobs, Instant::now(), &mut late);
            if taken.is_empty() {
                waiting.tasks -= 1;
                self.is_over = true;
            }
            taken
        };
        late.into_iter().for_each(J::give_up);
        Some(taken).filter(|taken| !taken.is_empty())
    }
}

fn take<J: Job>(waiting: &mut VecDeque<(Instant, J)>, now: Instant, late: &mut Vec<J>) -> Vec<J> {
    let (mut taken, mut rows, mut bytes): (Vec<J>, usize, usize) = (Vec::new(), 0, 0);
    while let Some((end, job)) = waiting.front() {
        let is_late = *end <= now;
        if !is_late && !taken.is_empty() && !job.fits(&taken[0], rows + job.rows(), bytes + job.bytes()) {
            break;
        }
        let Some((_, job)) = waiting.pop_front() else { break };
        if job.is_given_up() {
            continue;
        }
        if is_late {
            late.push(job);
            continue;
        }
        rows += job.rows();
        bytes += job.bytes();
        taken.push(job);
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Rows(usize);

    impl Job for Rows {
        fn fits(&self, _first: &Self, rows: usize, bytes: usize) -> bool {
            rows <= 10 && bytes <= 100
        }

        fn rows(&self) -> usize {
            self.0
        }

        fn bytes(&self) -> usize {
            self.0
        }

        fn is_given_up(&self) -> bool {
            self.0 == 0
        }

        fn give_up(self) {}
    }

    #[tokio::test]
    async fn a_command_carries_what_fits_in_the_order_of_waiting() {
        let (now, mut late) = (Instant::now(), Vec::new());
        let end = now + Duration::from_secs(1);
        let mut waiting: VecDeque<_> =
            [(end, 4), (end, 0), (now, 9), (end, 6), (end, 1), (end, 50), (end, 2)].map(|(end, rows)| (end, Rows(rows))).into();
        let mut next = || take(&mut waiting, now, &mut late).into_iter().map(|job| job.0).collect::<Vec<_>>();
        assert_eq!(next(), [4, 6]);
        assert_eq!(next(), [1]);
        assert_eq!(next(), [50], "one that is too large goes alone");
        assert_eq!(next(), [2]);
        assert!(next().is_empty());
        assert_eq!(late, [Rows(9)]);
    }

    #[tokio::test]
    async fn what_comes_while_a_command_is_under_way_goes_together_and_every_job_is_done() {
        let queue = Arc::new(Queue::new(1));
        let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let permits = Arc::new(tokio::sync::Semaphore::new(0));
        let given = Arc::clone(&permits);
        let work = move |jobs: Vec<Rows>| {
            let (began, permits) = (began.clone(), Arc::clone(&given));
            async move {
                drop(began.send(jobs.into_iter().map(|job| job.0).collect::<Vec<_>>()));
                permits.acquire().await.unwrap().forget();
            }
        };
        queue.join(Rows(1), work);
        assert_eq!(begins.recv().await.unwrap(), [1]);
        queue.join(Rows(2), |_| async {});
        queue.join(Rows(3), |_| async {});
        permits.add_permits(2);
        assert_eq!(begins.recv().await.unwrap(), [2, 3]);
    }
}
