//! The user that runs the server: PostgreSQL refuses to run as root, and tests often do.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

/// The account to switch to; `None` when this process is an ordinary user already.
#[derive(Debug)]
pub struct ServerUser(Option<Account>);

#[derive(Debug, PartialEq)]
struct Account {
    uid: u32,
    gid: u32,
}

impl ServerUser {
    /// The user of this process.
    pub const fn own() -> Self {
        Self(None)
    }

    pub fn choose() -> Self {
        let own_uid = std::fs::metadata("/proc/self").expect("/proc is not mounted").uid();
        if own_uid != 0 {
            return Self(None);
        }
        let passwd = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd could not be read");
        let account = account(&passwd, "postgres").or_else(|| account(&passwd, "nobody"));
        Self(Some(account.expect("running as root without an account `postgres` or `nobody` to run the server: add one")))
    }

    pub fn give(&self, directory: &Path) {
        if let Some(Account { uid, gid }) = self.0 {
            chown(directory, Some(uid), Some(gid)).expect("a directory could not be given to the server's user");
        }
    }

    /// Prepares `program` to run as this user in `home`; `setpriv_extra` are further options of setpriv(1).
    pub fn command(&self, program: impl AsRef<OsStr>, home: &Path, setpriv_extra: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(Account { uid, gid }) = self.0 {
            command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups");
        }
        command.args(setpriv_extra).arg("--").arg(program);
        // The caller's own directory may be closed to the server's user, and messages are searched for English words.
        command.current_dir(home).env("HOME", home).env("LC_ALL", "C").stdin(Stdio::null());
        without_postgres_settings(&mut command);
        command
    }
}

/// A developer's own PGPORT, PGOPTIONS or PGSERVICE must not lead a test to another server.
pub fn without_postgres_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
}

fn account(passwd: &str, name: &str) -> Option<Account> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2);
    Some(Account { uid: ids.next()?.parse().ok()?, gid: ids.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104::/var/lib:/bin/bash\n";
        assert_eq!(account(passwd, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(account(passwd, "nobody"), None);
    }
}
