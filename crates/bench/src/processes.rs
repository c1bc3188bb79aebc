//! The processes under measurement, as Linux shows them under `/proc`. On other systems, or where the processes belong to
//! another user, nothing is known of them.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// `USER_HZ`, the unit of the times in `/proc`: 100 on every architecture that Linux runs on today.
const TICKS_PER_SECOND: f64 = 100.0;
/// The programs of database servers, and what they are called.
const DATABASES: [(&str, &str); 4] =
    [("postgres", "PostgreSQL"), ("mariadbd", "MariaDB"), ("mysqld", "MySQL"), ("tidb-server", "TiDB")];
const SQLITE_VERSION_OFFSET: u64 = 96;
const CONNECTED: &str = "01";
const LISTENING: &str = "0A";

/// The service under load, and the server of its database if that is on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Watched {
    pub service: Option<u32>,
    /// The server, or the parent of all its processes.
    pub database: Option<u32>,
}

impl Watched {
    /// Finds the process that listens at `address`, and the database server that it is connected to.
    pub fn find(address: SocketAddr) -> Self {
        if !address.ip().is_loopback() {
            return Self::default();
        }
        let sockets = sockets();
        let service = listener(&sockets, address.port());
        let database = service.and_then(|service| database_of(&sockets, service));
        Self { service, database }
    }

    pub fn service_cpu_seconds(self) -> Option<f64> {
        Some(cpu_seconds(self.service?)?.own)
    }

    /// The CPU time of the server and all its processes, those that have ended included.
    pub fn database_cpu_seconds(self) -> Option<f64> {
        let server = self.database?;
        let ended = cpu_seconds(server)?;
        let living: f64 = processes().filter(|id| parent(*id) == Some(server)).filter_map(|id| Some(cpu_seconds(id)?.own)).sum();
        Some(ended.own + ended.children + living)
    }

    pub fn service_memory(self) -> Option<Memory> {
        memory(self.service?)
    }

    /// The memory of the database server and all its processes. What they share, its buffers above all, counts once.
    pub fn database_memory_bytes(self) -> Option<u64> {
        let server = self.database?;
        let own = proportional_bytes(server)?;
        // A session that ends meanwhile counts nothing.
        let children: u64 = processes().filter(|id| parent(*id) == Some(server)).filter_map(proportional_bytes).sum();
        Some(own + children)
    }

    /// The size of the store's files: an SQLite database with its log, everything that a PostgreSQL server keeps for tables, or
    /// everything that a MariaDB or MySQL server keeps.
    pub fn store_bytes(self) -> Option<u64> {
        match self.database {
            Some(server) => {
                let directory = fs::read_link(format!("/proc/{server}/cwd")).ok()?;
                let tables = directory.join("base");
                Some(tree_bytes(if tables.is_dir() { &tables } else { &directory }))
            }
            None => {
                let database = sqlite_file(self.service?)?;
                let bytes = |suffix: &str| {
                    let mut name = database.clone().into_os_string();
                    name.push(suffix);
                    fs::metadata(name).map(|file| file.len()).unwrap_or_default()
                };
                Some(["", "-wal", "-shm"].into_iter().map(bytes).sum())
            }
        }
    }

    /// The database of the service, as far as it can be seen.
    pub fn store(self) -> Option<String> {
        if let Some(server) = self.database {
            let directory = fs::read_link(format!("/proc/{server}/cwd")).ok();
            let version = directory.and_then(|directory| fs::read_to_string(directory.join("PG_VERSION")).ok());
            let name = name(server).and_then(|program| database_called(&program))?;
            return Some(format!("{name} {}", version.unwrap_or_default().trim()).trim_end().to_owned());
        }
        let version = sqlite_version(&sqlite_file(self.service?)?);
        Some(version.map_or("SQLite".to_owned(), |version| format!("SQLite {version}")))
    }
}

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub resident: u64,
    pub resident_max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct CpuSeconds {
    own: f64,
    /// The CPU time of children that have ended.
    children: f64,
}

pub fn own_cpu_seconds() -> Option<f64> {
    Some(cpu_seconds(std::process::id())?.own)
}

fn memory(process: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(Memory { resident: kibibytes(&status, "VmRSS:")? * 1024, resident_max: kibibytes(&status, "VmHWM:")? * 1024 })
}

/// The resident memory of a process, with what it shares divided by the number of those that share it.
fn proportional_bytes(process: u32) -> Option<u64> {
    Some(kibibytes(&fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?, "Pss:")? * 1024)
}

/// The number behind `name` in a list such as `/proc/meminfo`.
pub fn kibibytes(list: &str, name: &str) -> Option<u64> {
    list.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn cpu_seconds(process: u32) -> Option<CpuSeconds> {
    parse_cpu_seconds(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Fields 14 to 17 of `/proc/<id>/stat`.
fn parse_cpu_seconds(stat: &str) -> Option<CpuSeconds> {
    let fields = after_name(stat);
    let ticks: Vec<f64> = fields.skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    let [user, system, children_user, children_system] = ticks[..] else { return None };
    Some(CpuSeconds { own: (user + system) / TICKS_PER_SECOND, children: (children_user + children_system) / TICKS_PER_SECOND })
}

fn parent(process: u32) -> Option<u32> {
    parse_parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse_parent(stat: &str) -> Option<u32> {
    after_name(stat).nth(1)?.parse().ok()
}

/// The fields from the third on: the second is a name in brackets, which may hold blanks and brackets itself.
fn after_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace()
}

/// One line of `/proc/net/tcp` or `tcp6`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Socket {
    local_port: u16,
    remote_port: u16,
    state: String,
    inode: String,
}

fn sockets() -> Vec<Socket> {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    [read("tcp"), read("tcp6")].iter().flat_map(|table| table.lines().filter_map(parse_socket).collect::<Vec<_>>()).collect()
}

fn parse_socket(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
    Some(Socket {
        local_port: port(fields.get(1)?)?,
        remote_port: port(fields.get(2)?)?,
        state: (*fields.get(3)?).to_owned(),
        inode: (*fields.get(9)?).to_owned(),
    })
}

fn listener(sockets: &[Socket], port: u16) -> Option<u32> {
    let inodes = sockets.iter().filter(|socket| socket.state == LISTENING && socket.local_port == port);
    let inodes: BTreeSet<&str> = inodes.map(|socket| socket.inode.as_str()).collect();
    if inodes.is_empty() {
        return None;
    }
    // A child may have inherited the socket; the oldest process is the one that listens.
    processes().filter(|id| held_sockets(*id).iter().any(|inode| inodes.contains(inode.as_str()))).min()
}

fn database_of(sockets: &[Socket], service: u32) -> Option<u32> {
    let held = held_sockets(service);
    let connected = sockets.iter().filter(|socket| socket.state == CONNECTED && held.contains(&socket.inode));
    let ports: BTreeSet<u16> = connected.map(|socket| socket.remote_port).collect();
    ports
        .into_iter()
        .filter_map(|port| listener(sockets, port))
        .find(|id| name(*id).is_some_and(|program| database_called(&program).is_some()))
}

fn database_called(program: &str) -> Option<&'static str> {
    DATABASES.iter().find(|(known, _)| *known == program).map(|(_, name)| *name)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn name(process: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{process}/comm")).ok()?.trim_end().to_owned())
}

/// The inodes of the sockets that a process has open.
fn held_sockets(process: u32) -> BTreeSet<String> {
    let inode = |link: PathBuf| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    open_files(process).filter_map(inode).collect()
}

/// The SQLite file that a process has open: the one with a write-ahead log beside it.
fn sqlite_file(process: u32) -> Option<PathBuf> {
    open_files(process).find_map(|link| link.to_str()?.strip_suffix("-wal").map(PathBuf::from))
}

/// The version that has written the file last, from its header.
fn sqlite_version(file: &Path) -> Option<String> {
    let mut number = [0; 4];
    fs::File::open(file).ok()?.read_exact_at(&mut number, SQLITE_VERSION_OFFSET).ok()?;
    version_text(u32::from_be_bytes(number))
}

fn version_text(number: u32) -> Option<String> {
    (number >= 3_000_000).then(|| format!("{}.{}.{}", number / 1_000_000, number / 1_000 % 1_000, number % 1_000))
}

fn open_files(process: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// The size of the files under `directory`. One that vanishes meanwhile counts nothing.
fn tree_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => tree_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4711 (a (b) c) S 815 4711 4711 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 5 0 100 1 2 3";

    #[test]
    fn times_and_parent_stand_behind_a_name_that_may_hold_brackets() {
        assert_eq!(parse_cpu_seconds(STAT), Some(CpuSeconds { own: 2.0, children: 0.1 }));
        assert_eq!(parse_parent(STAT), Some(815));
        assert_eq!(parse_cpu_seconds("4711 (a) S 1"), None);
    }

    #[test]
    fn a_line_of_the_socket_table_has_ports_in_hexadecimal() {
        let line = "  1: 0100007F:1F90 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 2933338 1 0 100 0";
        let socket = Socket { local_port: 8080, remote_port: 5432, state: "01".to_owned(), inode: "2933338".to_owned() };
        assert_eq!(parse_socket(line), Some(socket));
        assert_eq!(parse_socket("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn a_version_is_one_number_in_the_header_of_the_file() {
        assert_eq!(version_text(3_051_002).as_deref(), Some("3.51.2"));
        assert_eq!(version_text(0), None);
    }

    #[test]
    fn the_process_that_listens_here_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let watched = Watched::find(listener.local_addr().unwrap());
        assert_eq!(watched, Watched { service: Some(std::process::id()), database: None });
        assert!(watched.service_cpu_seconds().is_some() && watched.service_memory().is_some_and(|memory| memory.resident > 0));
        let itself = Watched { database: Some(std::process::id()), ..watched };
        assert!(itself.database_memory_bytes() > Some(0) && watched.database_memory_bytes().is_none());
    }
}
