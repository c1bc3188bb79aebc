use std::{sync::Mutex, time::Duration};

use tokio::sync::Notify;

/// Stands before everything by which a node can act or learn. A task cannot be killed from outside, but one that can do neither
/// is as good as dead.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    /// Wakes those who wait in their order; a watch channel would not.
    opened: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Stopped as by SIGSTOP: everything waits.
    Shut,
    /// The process is gone: nothing comes through any more.
    Gone,
}

impl Gate {
    pub fn new() -> Self {
        Self { state: Mutex::new(State::Open), opened: Notify::new() }
    }

    /// Goes through. Says whether it had to wait.
    pub async fn pass(&self) -> bool {
        let mut waited = false;
        loop {
            let opened = self.opened.notified();
            if self.state() == State::Open {
                return waited;
            }
            waited = true;
            opened.await;
        }
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap()
    }

    pub fn crash(&self) {
        *self.state.lock().unwrap() = State::Gone;
    }

    pub async fn pause(&self, length: Duration) {
        self.set(State::Shut);
        tokio::time::sleep(length).await;
        self.set(State::Open);
        self.opened.notify_waiters();
    }

    /// A process that is gone stays gone.
    fn set(&self, state: State) {
        let mut current = self.state.lock().unwrap();
        if *current != State::Gone {
            *current = state;
        }
    }

    pub fn is_gone(&self) -> bool {
        self.state() == State::Gone
    }

    pub fn is_open(&self) -> bool {
        self.state() == State::Open
    }
}
