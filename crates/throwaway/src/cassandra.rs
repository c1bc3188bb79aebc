//! A Cassandra of one node or of three, each a Java process with a directory of its own.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::home;
use crate::keeper::{self, KILLED_WITH_KEEPER};
use crate::port::free_port;
use crate::server_user::ServerUser;

/// As in `scripts/cassandra.sh`.
const VERSION: &str = "5.0.9";
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The limit of polls, about four minutes: a JVM on a busy machine takes more than one.
const POLLS_MAX: u32 = 4_800;
const OPEN_TO_ALL: &str = "authenticator: AllowAllAuthenticator\n";
const LISTENS: &str = "Starting listening for CQL clients";

/// Packages of Java that Cassandra looks into.
const OPENED: [&str; 17] = [
    "java.lang",
    "java.lang.module",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.loader",
    "jdk.internal.math",
    "jdk.internal.misc",
    "jdk.internal.module",
    "jdk.internal.ref",
    "jdk.internal.reflect",
    "jdk.internal.util.jar",
    "sun.nio.ch",
];
const EXPORTED: [&str; 5] = [
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
];

/// A cluster of its own, from its start to `drop`. Its nodes listen on 127.0.0.1 and the addresses after it, all on the same ports.
#[derive(Debug)]
pub struct Cassandra {
    nodes: Vec<Node>,
    port: u16,
    keyspaces_named: AtomicU32,
}

/// PEM files for a Cassandra that takes encrypted connections only, from clients that have a certificate and a password.
#[derive(Debug)]
pub struct CassandraGuard<'a> {
    /// The key of the node and its certificate.
    pub identity: &'a Path,
    /// The authority that has signed the certificates of clients.
    pub clients: &'a Path,
}

impl CassandraGuard<'_> {
    fn settings(&self) -> String {
        format!(
            "authenticator: PasswordAuthenticator\nclient_encryption_options:\n  enabled: true\n  optional: false\n  \
             require_client_auth: true\n  ssl_context_factory:\n    \
             class_name: org.apache.cassandra.security.PEMBasedSslContextFactory\n  keystore: {}\n  truststore: {}\n",
            self.identity.display(),
            self.clients.display()
        )
    }
}

#[derive(Debug)]
struct Node {
    jars: PathBuf,
    home: TempDir,
    address: Ipv4Addr,
    heap: &'static str,
    process: Mutex<Option<Child>>,
}

impl Cassandra {
    /// Starts one node; `None` where `scripts/cassandra.sh` would find no jars.
    pub fn start() -> Option<Self> {
        Self::start_nodes(1, "768m", OPEN_TO_ALL)
    }

    /// Starts one node that knows the user `cassandra` with the password `cassandra`.
    pub fn start_guarded(guard: &CassandraGuard<'_>) -> Option<Self> {
        Self::start_nodes(1, "768m", &guard.settings())
    }

    /// Starts three nodes, one after the other.
    pub fn start_three() -> Option<Self> {
        Self::start_nodes(3, "512m", OPEN_TO_ALL)
    }

    fn start_nodes(count: u8, heap: &'static str, access: &str) -> Option<Self> {
        let jars = jars()?;
        let (port, storage_port) = (free_port(), free_port());
        let addresses: Vec<Ipv4Addr> = (1..=count).map(|number| Ipv4Addr::new(127, 0, 0, number)).collect();
        let node = |address: &Ipv4Addr| {
            let node =
                Node { jars: jars.clone(), home: home::make("cassandra"), address: *address, heap, process: Mutex::new(None) };
            node.configure(&addresses, port, storage_port, access);
            node
        };
        let cluster = Self { nodes: addresses.iter().map(node).collect(), port, keyspaces_named: AtomicU32::new(0) };
        for node in &cluster.nodes {
            node.start(port);
        }
        Some(cluster)
    }

    /// The URL of a keyspace.
    pub fn url(&self, keyspace: &str) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("{}:{}", node.address, self.port)).collect();
        format!("cassandra://{}/{keyspace}?replication={}", hosts.join(","), self.nodes.len())
    }

    /// The URL of a keyspace that no other test has. The store creates it.
    pub fn new_keyspace(&self) -> String {
        self.url(&format!("test_{}", self.keyspaces_named.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Kills a node: nothing is written any more. No effect on a node that does not run.
    pub fn kill(&self, node: usize) {
        self.nodes[node].kill();
    }

    /// Starts a node again, with its data. No effect on one that runs.
    pub fn start_again(&self, node: usize) {
        self.nodes[node].start(self.port);
    }
}

impl Node {
    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("system.log")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.home.path().join("conf").join(name), text).expect("a file could not be written for Cassandra");
    }

    /// All nodes are seeds: with one alone, the others could not start again while that one is down.
    fn configure(&self, seeds: &[Ipv4Addr], port: u16, storage_port: u16, access: &str) {
        let home = self.home.path().display();
        let seeds: Vec<_> = seeds.iter().map(Ipv4Addr::to_string).collect();
        fs::create_dir(self.home.path().join("conf")).expect("a directory could not be made for Cassandra");
        let directories =
            ["commitlog", "saved_caches", "hints"].map(|name| format!("{name}_directory: {home}/{name}\n")).concat();
        self.write(
            "cassandra.yaml",
            &format!(
                "cluster_name: throwaway\nnum_tokens: 4\nauto_bootstrap: false\nauto_snapshot: false\n\
                 partitioner: org.apache.cassandra.dht.Murmur3Partitioner\nendpoint_snitch: SimpleSnitch\n\
                 listen_address: {address}\nrpc_address: {address}\nstorage_port: {storage_port}\nnative_transport_port: {port}\n\
                 seed_provider:\n  - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n    parameters:\n      \
                 - seeds: \"{}\"\ndata_file_directories: [\"{home}/data\"]\n{directories}cdc_raw_directory: {home}/cdc\n\
                 commitlog_sync: group\ncommitlog_sync_group_window: 2ms\ncommitlog_segment_size: 16MiB\n\
                 commitlog_total_space: 256MiB\nmemtable_allocation_type: heap_buffers\ndisk_optimization_strategy: ssd\n\
                 concurrent_reads: 16\nconcurrent_writes: 32\nkey_cache_size: 16MiB\nfile_cache_size: 64MiB\n\
                 networking_cache_size: 32MiB\nauthorizer: AllowAllAuthorizer\n{access}",
                seeds.join(","),
                address = self.address,
            ),
        );
        let pattern = "%-5level %date{HH:mm:ss.SSS} %logger{1} %msg%n";
        self.write(
            "logback.xml",
            &format!(
                "<configuration><appender name=\"F\" class=\"ch.qos.logback.core.FileAppender\"><file>{}</file>\
                 <encoder><pattern>{pattern}</pattern></encoder></appender>\
                 <root level=\"INFO\"><appender-ref ref=\"F\"/></root></configuration>",
                self.log().display()
            ),
        );
    }

    fn arguments(&self) -> Vec<String> {
        let home = self.home.path().display();
        let agent = fs::read_dir(&self.jars).expect("the jars of Cassandra cannot be listed").flatten().map(|entry| entry.path());
        let agent = agent
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jamm-")))
            .find(|path| path.extension().is_some_and(|extension| extension == "jar"))
            .expect("the jars of Cassandra lack jamm");
        let mut arguments: Vec<String> = vec![format!("-Xms{}", self.heap), format!("-Xmx{}", self.heap)];
        arguments.extend(["-Xss256k", "-XX:+UseG1GC", "-XX:MaxDirectMemorySize=256m", "-XX:-UsePerfData"].map(str::to_owned));
        for package in OPENED {
            for way in ["--add-opens", "--add-exports"] {
                arguments.extend([way.to_owned(), format!("java.base/{package}=ALL-UNNAMED")]);
            }
        }
        for package in EXPORTED {
            arguments.extend(["--add-exports".to_owned(), format!("{package}=ALL-UNNAMED")]);
        }
        arguments.extend(["--add-opens".to_owned(), "jdk.management/com.sun.management.internal=ALL-UNNAMED".to_owned()]);
        arguments.push(format!("-javaagent:{}", agent.display()));
        arguments.push(format!("-Dcassandra.config=file://{home}/conf/cassandra.yaml"));
        arguments.push(format!("-Dlogback.configurationFile=file://{home}/conf/logback.xml"));
        arguments.push(format!("-Dcassandra.storagedir={home}"));
        let properties = [
            "java.security.manager=allow",
            "jdk.attach.allowAttachSelf=true",
            "java.net.preferIPv4Stack=true",
            "io.netty.tryReflectionSetAccessible=true",
            "cassandra-foreground=yes",
            "cassandra.ring_delay_ms=500",
            "cassandra.skip_wait_for_gossip_to_settle=0",
            "cassandra.superuser_setup_delay_ms=0",
        ];
        arguments.extend(properties.map(|property| format!("-D{property}")));
        arguments.extend(["-cp".to_owned(), format!("{home}/conf:{}/*", self.jars.display())]);
        arguments.push("org.apache.cassandra.service.CassandraDaemon".to_owned());
        arguments
    }

    /// Starts the node unless it runs, and waits until it takes connections.
    fn start(&self, port: u16) {
        let mut process = self.process();
        if process.is_some() {
            return;
        }
        drop(fs::remove_file(self.log()));
        let output = File::create(self.home.path().join("output")).expect("a file could not be made for Cassandra");
        let errors = output.try_clone().expect("a file could not be shared");
        // Its jars may lie where only this user can read them.
        let mut command = ServerUser::own().command("java", self.home.path(), &KILLED_WITH_KEEPER);
        command.args(self.arguments()).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
        let child = process.insert(keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run"));
        for _ in 0..POLLS_MAX {
            let log = read(&self.log());
            if log.contains(LISTENS) && TcpStream::connect((self.address, port)).is_ok() {
                return;
            }
            let ended = child.try_wait().expect("the state of Cassandra could not be read");
            assert!(
                ended.is_none(),
                "Cassandra ended while starting (Java 17 runs it):\n{}{log}",
                read(&self.home.path().join("output"))
            );
            sleep(POLL_INTERVAL);
        }
        panic!("Cassandra takes no connections minutes after its start:\n{}", read(&self.log()));
    }

    fn kill(&self) {
        if let Some(mut child) = self.process().take() {
            // It may have ended by itself; only that it is gone counts.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Where `scripts/cassandra.sh` looks as well.
fn jars() -> Option<PathBuf> {
    let named = std::env::var_os("CASSANDRA_JARS").map(PathBuf::from);
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let version = std::env::var("CASSANDRA_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let fetched = caches.map(|caches| caches.join("timer-platform/cassandra").join(version));
    named.into_iter().chain(fetched).find(|directory| directory.is_dir())
}
