//! What systemd is told about the state of the service, where it asks to be told (`Type=notify`).

use std::{
    env,
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// The service takes requests.
pub fn ready() {
    tell("READY=1");
}

/// The service has begun its graceful shutdown.
pub fn stopping() {
    tell("STOPPING=1");
}

/// A service manager that does not hear it must not keep the service from its work.
fn tell(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())
        && let Err(error) = send(&socket, state)
    {
        tracing::warn!(%error, "the service manager could not be told that {state}");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reaches_a_socket_in_a_directory_and_an_abstract_one() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("notify");
        let name = format!("timer-notify-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = [
            (UnixDatagram::bind(&file).unwrap(), file.into_os_string()),
            (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}").into()),
        ];
        for (listening, socket) in sockets {
            send(&socket, "READY=1").unwrap();
            let mut heard = [0; 64];
            let length = listening.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1");
        }
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error() {
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}
