//! Three MariaDB servers that replicate to each other, each of which takes writes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::{Kind, Mysql};
use crate::port::free_port;

/// Put there by `scripts/galera.sh`.
const GALERA_OF_THIS_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/galera");
const PROVIDER: &str = "usr/lib/galera/libgalera_smm.so";
/// The smallest number of servers that can lose one and still have a majority.
const SERVERS: usize = 3;
/// Only a server that has been in a cluster has it.
const STATE: &str = "grastate.dat";

/// Servers on loopback that form one cluster, numbered from 0: `Galera::start()` to `drop`.
#[derive(Debug)]
pub struct Galera {
    servers: Vec<Arc<Mysql>>,
}

impl Galera {
    /// Returns once all servers are in step; `None` where `scripts/galera.sh` has not put what they need.
    pub fn start() -> Option<Self> {
        let root = fs::canonicalize(GALERA_OF_THIS_CHECKOUT).ok().filter(|root| root.join(PROVIDER).is_file())?;
        let ports: Vec<Ports> = (0..SERVERS).map(|_| Ports::free()).collect();
        let addresses: Vec<String> = ports.iter().map(|ports| format!("127.0.0.1:{}", ports.group)).collect();
        let cluster = format!("gcomm://{}", addresses.join(","));
        let member = |(number, ports)| Member { root: root.clone(), number, ports, cluster: cluster.clone() };
        // One after the other: each is given its data by one that runs.
        let start = |place| Arc::new(Mysql::start(Kind::Galera(member(place))));
        Some(Self { servers: ports.into_iter().enumerate().map(start).collect() })
    }

    /// One of them. What is written there is written to all; [`Mysql::start_again`] returns once it is in step.
    pub fn server(&self, number: usize) -> &Arc<Mysql> {
        &self.servers[number]
    }
}

/// One server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Where the packages are unpacked.
    root: PathBuf,
    number: usize,
    ports: Ports,
    cluster: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ports {
    group: u16,
    /// Where it is given what it has missed.
    increments: u16,
    /// Where it is given everything.
    snapshot: u16,
}

impl Ports {
    fn free() -> Self {
        Self { group: free_port(), increments: free_port(), snapshot: free_port() }
    }
}

impl Member {
    /// Whether its next start begins the cluster; otherwise it joins those that run.
    pub(super) fn begins(&self, data: &Path) -> bool {
        self.number == 0 && !data.join(STATE).exists()
    }

    pub(super) fn configure(&self, command: &mut Command, data: &Path) {
        let Ports { group, increments, snapshot } = self.ports;
        command.arg("--wsrep-on=ON").arg(format!("--wsrep-provider={}", self.root.join(PROVIDER).display()));
        command.arg(format!("--wsrep-cluster-address={}", self.cluster));
        command.arg(format!("--wsrep-node-name=server{}", self.number)).arg(format!("--wsrep-node-address=127.0.0.1:{group}"));
        let listen = format!("gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{increments};gcache.size=32M");
        command.arg(format!("--wsrep-provider-options={listen}"));
        // One that gives its data away takes no writes meanwhile: the last one does, if it can.
        command.arg(format!("--wsrep-sst-donor=server{},", SERVERS - 1));
        command.arg("--wsrep-sst-method=rsync").arg(format!("--wsrep-sst-receive-address=127.0.0.1:{snapshot}"));
        command.args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2"]);
        if self.begins(data) {
            command.arg("--wsrep-new-cluster");
        }
        command.env("PATH", self.with_own_programs()).env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
    }

    /// The server runs programs of the packages to give its data to another.
    fn with_own_programs(&self) -> OsString {
        let path = env::var_os("PATH").unwrap_or_default();
        let programs = [self.root.join("usr/bin")].into_iter().chain(env::split_paths(&path));
        env::join_paths(programs).expect("a path of programs that can be written")
    }
}
