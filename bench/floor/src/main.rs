//! The floor under a timer service: as much of the API as `timer bench w1 w2` drives, durable, and nothing else.
//!
//! ```text
//!   thread of the API                       thread of the calls
//!   request ─▶ queue ─▶ create ─▶ answer    due ─▶ claim ─▶ call ─▶ complete
//!                         │                          │               │
//!                         ▼                          ▼               ▼
//!              SQLite: one writer thread, all in one commit; PostgreSQL: a connection for each of them
//! ```
//!
//! A timer is on disk before its create is answered, its claim before its call, and its completion after it. After a crash
//! whatever has not been completed is called again. Creates, claims and completions gather while those before them are written.
//!
//! It has no keys and no egress policy, and therefore listens at the loopback interface only.

mod api;
mod calls;
mod clock;
mod queue;
mod receiver;
mod request;
mod store;
mod timer;

use std::{
    env,
    net::{Ipv4Addr, TcpListener},
    process::ExitCode,
    thread,
};

use tokio::{
    runtime::{Builder, LocalRuntime},
    sync::mpsc,
};

use crate::{calls::Calls, store::Database};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many batches of created timers may wait until the thread of the calls has noted them.
const CREATED_BATCHES_MAX: usize = 1_024;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until the process is killed, which costs nothing: all that was answered is on disk.
fn serve() -> Result<()> {
    if env::args().nth(1).as_deref() != Some("serve") {
        return Err("usage: floor serve, with DATABASE_URL and PORT".into());
    }
    let database_url = env::var("DATABASE_URL").map_err(|error| format!("DATABASE_URL: {error}"))?;
    let port: u16 = env::var("PORT").map_err(|error| format!("PORT: {error}"))?.parse()?;
    let address = (Ipv4Addr::LOCALHOST, port);
    // In the words of `timer serve`, by which the benchmark knows that another port may help.
    let cannot = |error| format!("PORT {}:{port} cannot be opened: {error}.", Ipv4Addr::LOCALHOST);
    let listener = TcpListener::bind(address).map_err(cannot)?;
    listener.set_nonblocking(true)?;

    let runtime = one_thread()?;
    runtime.block_on(async {
        let (database, pending) = Database::open(&database_url).await?;
        let (created, noted) = mpsc::channel(CREATED_BATCHES_MAX);
        let of_calls = database.clone();
        thread::Builder::new().name("calls".to_owned()).spawn(move || {
            let calls = one_thread().and_then(|runtime| runtime.block_on(Calls::new(pending).run(&of_calls, noted)));
            if let Err(error) = calls {
                store::give_up(&*error);
            }
        })?;
        api::serve(listener, &database, created).await
    })
}

fn one_thread() -> Result<LocalRuntime> {
    Ok(Builder::new_current_thread().enable_all().build_local(Default::default())?)
}
