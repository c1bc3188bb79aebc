//! Starts servers so that none outlives this process.

use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// Options for setpriv(1) that end PostgreSQL together with the keeper.
///
/// SIGQUIT is its immediate shutdown: unlike after SIGKILL, it takes its children and its shared memory with it.
pub const QUIT_WITH_KEEPER: [&str; 2] = ["--pdeathsig", "QUIT"];

/// The same for a server without children, which may be paused: only SIGKILL ends a paused process.
pub const KILLED_WITH_KEEPER: [&str; 2] = ["--pdeathsig", "KILL"];

type Order = (Command, Sender<std::io::Result<Child>>);

/// Spawns `command` from a thread that lives until this process ends.
///
/// The kernel sends the parent-death signal when the *thread* that forked ends, not the process; a test's own thread ends
/// with the test, and would take a shared server along.
pub fn spawn(command: Command) -> std::io::Result<Child> {
    static KEEPER: OnceLock<Sender<Order>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        std::thread::Builder::new()
            .name("throwaway-keeper".into())
            .spawn(move || {
                for (mut command, answer) in inbox {
                    // The caller waits for the answer; without a caller, the child handle is dropped as well.
                    drop(answer.send(command.spawn()));
                }
            })
            .expect("the keeper thread could not be started");
        orders
    });
    let (answer, child) = channel();
    keeper.send((command, answer)).expect("the keeper thread is gone");
    child.recv().expect("the keeper thread is gone")
}
