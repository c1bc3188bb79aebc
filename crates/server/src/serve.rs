//! `timer serve`: everything wired together.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
};

use api::{ApiConfig, HealthItem};
use commands::{CallCount, Commands, Events, KeyRing, OperationRunner, Rules, Searches, Stats, Stores};
use delivery::Deliverer;
use dev::DevTools;
use domain::{Caller, Clock, SystemClock, Tracer};
use engine::{Drained, Heartbeats, Pipeline, PipelineMetrics, Recorder};
use scheduler::{Alarm, Scheduler};
use store::{Measured, NodeId, Store, Writable};
use tokio::{
    net::TcpListener,
    runtime::{Handle, Runtime},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use traces::Traces;

use crate::{
    api_wiring, console_wiring,
    exit::Failure,
    nats_wiring::{NatsWiring, RunningConsumer},
    notify, rlimit,
    settings::{Defaults, Options, Settings},
    signals,
    statistics::Statistics,
    storage, telemetry,
};

pub fn main(options: &Options) -> Result<(), Failure> {
    telemetry::log(&options.logs);
    let bind = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let settings = Settings::resolve(options, Defaults { api_key: None, bind, signing_secret: None, answer_bytes_max: 0 })?;
    run(&settings, Arc::new(SystemClock::default()), None, |started| {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            address = %started.address,
            store = started.store,
            egress = started.egress,
            nats = started.nats,
            "timer is ready"
        );
    })
}

/// What a start-up message can tell.
pub struct Started {
    pub address: SocketAddr,
    pub store: String,
    pub egress: String,
    pub nats: Option<String>,
}

/// The parts of a running service that the tools of `timer dev` work on.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub scheduler: Arc<Scheduler>,
    pub recorder: Arc<Recorder>,
    pub stop: CancellationToken,
}

/// Makes the tools of `timer dev` for a running service.
pub type MakeTools = Box<dyn FnOnce(Parts) -> DevTools>;

/// Runs the service by this clock until a signal stops it. `announce` is called once it takes requests.
pub fn run(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    tools: Option<MakeTools>,
    announce: impl FnOnce(&Started),
) -> Result<(), Failure> {
    let files = rlimit::share(rlimit::allow_many());
    let runtime = api_runtime().map_err(|error| Failure::run(format!("no threads can be started: {error}."), error))?;
    let drained = runtime.block_on(run_until_stopped(settings, files, clock, tools, announce))?;
    match drained {
        Drained::Completely => Ok(()),
        Drained::Broken => Err(Failure::Run("a part of the service failed; see the log.".into())),
        Drained::Partly => {
            Err(Failure::Run("stopped before every call had finished; those timers will be taken up at the next start.".into()))
        }
    }
}

fn no_thread(error: io::Error) -> Failure {
    Failure::run(format!("no thread can be started: {error}."), error)
}

fn api_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(api_threads()).enable_all().build()
}

/// Half of the processors take requests: the store and the firing, which have threads of their own, need the other half. More threads
/// would only wake each other.
fn api_threads() -> usize {
    thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1))
}

async fn run_until_stopped(
    settings: &Settings,
    files: rlimit::Shares,
    clock: Arc<dyn Clock>,
    tools: Option<MakeTools>,
    announce: impl FnOnce(&Started),
) -> Result<Drained, Failure> {
    let metrics = telemetry::metrics()?;
    let stop = CancellationToken::new();
    signals::stop_on_signal(stop.clone())
        .map_err(|error| Failure::run(format!("signals cannot be received: {error}."), error))?;
    let listener = TcpListener::bind(settings.address)
        .await
        .map_err(|error| Failure::configuration(format!("PORT {} cannot be opened: {error}.", settings.address), error))?;
    let address = listener.local_addr().unwrap_or(settings.address);
    let store = tokio::select! {
        opened = settings.database.open(&clock) => opened?,
        () = stop.cancelled() => return Ok(Drained::Completely),
    };

    let store = Measured::new(store, Arc::clone(&clock));
    let writable = store.writable();
    let name = node_name(&settings.scheduler.name, address);
    let base = Base { settings, files, name, clock, store: Arc::new(store), writable, stop: stop.clone() };
    let (api_parts, background) = start_background(&base, tools)?;

    let nats = settings.nats.as_ref().map(nats::Options::place);
    announce(&Started { address, store: settings.database.describe(), egress: settings.delivery.egress.to_string(), nats });
    notify::ready();
    serve_api(base, api_parts, listener, metrics).await;
    // A consumer that closed by itself must not leave a service that only looks alive.
    stop.cancel();
    background.drain().await
}

/// What every part of the service is made from.
struct Base<'a> {
    settings: &'a Settings,
    files: rlimit::Shares,
    /// What people call this process.
    name: String,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    writable: Arc<Writable>,
    stop: CancellationToken,
}

/// What the API needs of the other parts.
struct ApiParts {
    commands: Commands,
    scheduler: Arc<Scheduler>,
    recorder: Arc<Recorder>,
    tracer: Option<Arc<dyn Tracer>>,
    dev: Option<DevTools>,
    nats_health: Vec<HealthItem>,
}

/// What works beside the API, and how it ends.
struct Background {
    nats: NatsWiring,
    statistics: Statistics,
    traces: Option<Traces>,
    fired: oneshot::Receiver<Drained>,
    consumer: RunningConsumer,
    /// Tasks that may end in the middle of their work: another node, or the next start, goes on with it.
    tasks: [JoinHandle<()>; 3],
}

/// Starts everything but the API.
fn start_background(base: &Base<'_>, tools: Option<MakeTools>) -> Result<(ApiParts, Background), Failure> {
    let Base { settings, clock, store, writable, stop, .. } = base;
    let watching = tokio::spawn(storage::watch(store.clone(), Arc::clone(writable), stop.clone()));
    let traces = traces(settings)?;
    let tracer = traces.as_ref().map(Traces::tracer);
    let deliverer = wire_deliverer(base)?;
    let node = NodeId(rand::random());
    let scheduler = wire_scheduler(base, node)?;
    let statistics = Statistics::start(node, store, clock, stop);
    let pruner = Arc::clone(&scheduler);
    let pruning = tokio::spawn(Events::new(store.clone()).prune(move || pruner.is_purger()));
    let nats = NatsWiring::open(settings, stop);

    let heartbeat = heartbeat_runtime().map_err(no_thread)?;
    let deliverer = Arc::new(nats.equip(deliverer, clock).traced_by(tracer.clone()));
    let recorder = statistics.recorder();
    let parts = Parts { store: store.clone(), scheduler: Arc::clone(&scheduler), recorder, stop: stop.clone() };
    let dev = tools.map(|make| make(parts));
    let stats = statistics.shown(&settings.delivery.namespaces);
    let commands = Commands { stats, ..wire_commands(settings, store, clock, &scheduler, &deliverer) };
    let heartbeats = Heartbeats::on(heartbeat.handle().clone());
    let pipeline = Arc::new(wire_pipeline(base, &scheduler, deliverer, statistics.recorder(), heartbeats));
    let fired = fire(thread::Builder::new(), |stop| pipeline.run(stop), heartbeat, stop.clone()).map_err(no_thread)?;
    let runner = operation_runner(&commands, settings, &scheduler, store.has_one_writer());
    let operating = tokio::spawn(runner.run(stop.clone().cancelled_owned()));
    let consumer = nats.start_consumer(commands.clone(), stop.clone());

    let (recorder, nats_health) = (statistics.recorder(), nats.health());
    let api_parts = ApiParts { commands, scheduler, recorder, tracer, dev, nats_health };
    let tasks = [watching, pruning, operating];
    Ok((api_parts, Background { nats, statistics, traces, fired, consumer, tasks }))
}

/// Answers requests until the service stops.
async fn serve_api(base: Base<'_>, parts: ApiParts, listener: TcpListener, metrics: Arc<dyn Fn() -> String + Send + Sync>) {
    let Base { settings, files, writable, stop, .. } = base;
    let ApiParts { commands, scheduler, recorder, tracer, dev, nats_health } = parts;
    let mut config = ApiConfig { dev, tracer, ..api_wiring::config(settings, files, metrics, scheduler) };
    config.health.push(storage::health(writable));
    config.health.extend(nats_health);
    let keyring = KeyRing::new(Arc::clone(&commands.stores.keys), Arc::clone(&commands.clock));
    let keyring = Arc::new(keyring.noting(Arc::new(move |key, at| recorder.key_used(key, at))));
    config.console = console_wiring::router(settings, &config, &commands, &keyring, &stop);
    let limits = config.limits;
    let base_path = settings.base_path.clone();
    api::serve(listener, api::router(config, commands, keyring), base_path, limits, stop).await;
}

impl Background {
    /// Waits until the calls that are being made have ended. To be called when the service has been told to stop.
    async fn drain(self) -> Result<Drained, Failure> {
        let Self { nats, statistics, traces, fired, consumer, tasks } = self;
        tasks.iter().for_each(JoinHandle::abort);
        let (drained, closed) = tokio::join!(fired, consumer.closed());
        statistics.finish().await;
        if let Some(traces) = traces {
            traces.finish().await;
        }
        let drained = drained.map_err(|_| Failure::Run("the scheduler ended unexpectedly; see the log.".into()))?;
        Ok(if closed && !nats.is_broken() { drained } else { Drained::Broken })
    }
}

/// Begins to send traces, where they are wanted.
fn traces(settings: &Settings) -> Result<Option<Traces>, Failure> {
    let start = |config: &traces::Config| Traces::start(config.clone(), Handle::current());
    settings.traces.as_ref().map(start).transpose().map_err(|error| Failure::configuration(format!("{error}."), error))
}

/// Runs the pipeline on a thread and a runtime of its own: load on the API and firing do not wait for each other, and
/// for many small calls one thread is faster than two.
fn fire<Running: Future<Output = Drained>>(
    thread: thread::Builder,
    run: impl FnOnce(CancellationToken) -> Running + Send + 'static,
    heartbeat: Runtime,
    stop: CancellationToken,
) -> io::Result<oneshot::Receiver<Drained>> {
    // If it fails it drops runtimes, which wait for their threads: within another runtime that is a panic.
    tokio::task::block_in_place(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, receiver) = oneshot::channel();
        let fire = move || {
            // If the pipeline ends by a panic the service stops, and says so.
            let _stop_in_any_case = stop.clone().drop_guard();
            let drained = runtime.block_on(run(stop));
            heartbeat.shutdown_background();
            let _ = sender.send(drained);
        };
        thread.name("firing".to_owned()).spawn(fire)?;
        Ok(receiver)
    })
}

/// One thread that does nothing but keep the node alive: see [`Heartbeats`].
fn heartbeat_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("heartbeat").enable_all().build()
}

fn wire_commands(
    settings: &Settings,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    scheduler: &Arc<Scheduler>,
    deliverer: &Arc<Deliverer>,
) -> Commands {
    let checking = Arc::clone(deliverer);
    let nudged = Arc::clone(scheduler);
    let rules = Rules {
        horizon: settings.horizon,
        callbacks: deliverer.kinds(),
        callback_check: Arc::new(move |namespace, callback| checking.check(namespace, callback)),
    };
    let caller = Arc::clone(scheduler);
    let events = Events::yielding_to(store.clone(), Arc::new(move || caller.late_calls()));
    Commands {
        stores: Stores { events, ..Stores::of(Arc::clone(store)) },
        clock: Arc::clone(clock),
        rules,
        nudge: Arc::new(move |entries| nudged.nudge(entries)),
        caller: Caller::Administrator,
        searches: Searches::default(),
        stats: Stats::default(),
    }
}

fn wire_deliverer(base: &Base<'_>) -> Result<Deliverer, Failure> {
    let config = delivery::Config {
        idle_connections_max: Some(base.files.idle),
        node: Some(base.name.clone()),
        ..base.settings.delivery.clone()
    };
    Deliverer::new(config, Arc::clone(&base.clock)).map_err(|error| Failure::run(format!("{error}."), error))
}

fn wire_scheduler(base: &Base<'_>, node: NodeId) -> Result<Arc<Scheduler>, Failure> {
    let settings = &base.settings.scheduler;
    let config = scheduler::Config {
        name: base.name.clone(),
        in_flight_max: calls_at_once(settings.in_flight_max, base.files),
        ..settings.clone()
    };
    let alarm = Alarm::exact(Arc::clone(&base.clock)).map_err(no_thread)?;
    let scheduler = Scheduler::as_node(node, Arc::clone(&base.store), Arc::clone(&base.clock), config);
    Ok(Arc::new(scheduler.woken_by(alarm)))
}

fn wire_pipeline(
    base: &Base<'_>,
    scheduler: &Arc<Scheduler>,
    deliverer: Arc<Deliverer>,
    recorder: Arc<Recorder>,
    heartbeats: Heartbeats,
) -> Pipeline {
    let Base { settings, clock, store, .. } = base;
    Pipeline {
        scheduler: Arc::clone(scheduler),
        deliverer,
        store: store.clone(),
        timers: store.clone(),
        health: store.clone(),
        clock: Arc::clone(clock),
        overdue_window: settings.overdue_window,
        retry_interval_min: settings.retry_interval_min,
        namespaces: Arc::clone(&settings.delivery.namespaces),
        timer_page: settings.timer_page(),
        metrics: PipelineMetrics::default().recorded_by(recorder),
        heartbeats,
    }
}

fn operation_runner(
    commands: &Commands,
    settings: &Settings,
    scheduler: &Arc<Scheduler>,
    has_one_writer: bool,
) -> OperationRunner {
    let caller = Arc::clone(scheduler);
    let calls: CallCount = Arc::new(move || caller.calls());
    let runner = OperationRunner::new(commands.clone(), settings.scheduler.retention).yielding_to(calls);
    if has_one_writer { runner.sharing_one_writer() } else { runner }
}

/// The maximum number of calls at once: the wanted number, or what the limit of open files allows if that is less.
fn calls_at_once(wanted: usize, files: rlimit::Shares) -> usize {
    if wanted > files.calls {
        tracing::warn!(
            "IN_FLIGHT_MAX is {wanted}, but the limit of open files allows {} calls at once: raise the limit (ulimit -n) or lower IN_FLIGHT_MAX",
            files.calls
        );
    }
    wanted.min(files.calls)
}

/// The name that was given, or the machine and the port.
fn node_name(given: &str, address: SocketAddr) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", machine.trim(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firing_that_cannot_start_is_an_error_and_no_panic() {
        let started = api_runtime().unwrap().block_on(async {
            let too_large = thread::Builder::new().stack_size(1 << 60);
            let run = |_| async { Drained::Completely };
            fire(too_large, run, heartbeat_runtime().unwrap(), CancellationToken::new()).map(drop)
        });
        assert!(started.is_err());
    }
}
