//! The kept-alive connections to one receiver.

use std::{cell::Cell, rc::Rc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Uri,
    client::conn::http1::{SendRequest, handshake},
    header::{CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::spawn_local, time::timeout};

use crate::{Result, calls::Calls, queue::Queue, timer::Due};

const CONNECTIONS_MAX: usize = 128;
const CALL_TIME_MAX: Duration = Duration::from_secs(30);
const HTTP_PORT: u16 = 80;

pub struct Call {
    pub due: Due,
    pub url: Uri,
    pub body: Bytes,
}

pub struct Receiver {
    authority: String,
    calls: Queue<Call>,
    connections: Cell<usize>,
    idle: Cell<usize>,
}

impl Receiver {
    pub fn new(authority: &str) -> Rc<Self> {
        Rc::new(Self { authority: authority.to_owned(), calls: Queue::new(), connections: Cell::new(0), idle: Cell::new(0) })
    }

    /// Makes `call` over a connection that is idle, over a new one, or after those that wait.
    pub fn call(self: Rc<Self>, call: Call, calls: &Rc<Calls>) {
        self.calls.push(call);
        if self.calls.len() > self.idle.get() && self.connections.get() < CONNECTIONS_MAX {
            self.connections.set(self.connections.get() + 1);
            spawn_local(self.make_calls(calls.clone()));
        }
    }

    /// Makes one call after the other over one connection, which is opened again when it has broken.
    async fn make_calls(self: Rc<Self>, calls: Rc<Calls>) {
        let mut connection = None;
        loop {
            self.idle.set(self.idle.get() + 1);
            let call = self.calls.pop().await;
            self.idle.set(self.idle.get() - 1);
            let due = call.due;
            let made = timeout(CALL_TIME_MAX, self.make(&mut connection, call)).await;
            if let Err(error) = made.unwrap_or_else(|late| Err(late.into())) {
                eprintln!("floor: {} was called in vain: {error}", self.authority);
                connection = None;
            }
            calls.end(due);
        }
    }

    async fn make(&self, connection: &mut Option<SendRequest<Full<Bytes>>>, call: Call) -> Result<()> {
        let mut open = match connection.take() {
            Some(open) if !open.is_closed() => open,
            _ => self.open().await?,
        };
        open.ready().await?;
        let mut request = Request::new(Full::new(call.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from(call.url.path_and_query().cloned().ok_or("a URL without a path")?);
        request.headers_mut().insert(HOST, HeaderValue::from_str(&self.authority)?);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut answer = open.send_request(request).await?.into_body();
        while let Some(frame) = answer.frame().await {
            drop(frame?);
        }
        *connection = Some(open);
        Ok(())
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>> {
        let address = self.authority.rsplit_once('@').map_or(self.authority.as_str(), |(_, address)| address);
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let stream = if has_port { TcpStream::connect(address).await? } else { TcpStream::connect((address, HTTP_PORT)).await? };
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // The sender tells why it ended.
        spawn_local(async { drop(connection.await) });
        Ok(sender)
    }
}
