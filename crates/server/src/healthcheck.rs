use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use crate::{cli::LocalOptions, exit::Failure};

const TIMEOUT: Duration = Duration::from_secs(6);

/// `timer healthcheck`: one request to the service on this machine, for containers without curl.
pub fn main(options: &LocalOptions) -> Result<(), Failure> {
    let port = options.port.get()?;
    let base_path = options.base_path()?;
    let status =
        ask(port, base_path.as_str()).map_err(|error| Failure::run(format!("no answer on port {port}: {error}."), error))?;
    if status.starts_with("HTTP/1.1 200") {
        Ok(())
    } else {
        Err(Failure::Run(format!("the service is not healthy: {status}.").into()))
    }
}

/// The status line of `GET /healthz`.
fn ask(port: u16, base_path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {base_path}/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(16 * 1024).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
