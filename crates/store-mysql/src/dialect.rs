/// What the statements of this crate mean to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB as well.
    Mysql,
    Tidb,
}

impl Dialect {
    /// From what the server says of its version.
    pub fn of(version: &str) -> Self {
        if version.contains("TiDB") { Self::Tidb } else { Self::Mysql }
    }
}
