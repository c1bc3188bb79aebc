use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// A receiver. Each connection is served by the same script.
pub struct Receiver {
    pub addr: SocketAddr,
    heard: mpsc::Receiver<Heard>,
    peers: mpsc::Receiver<SocketAddr>,
    task: JoinHandle<()>,
}

/// A request, as it came.
#[derive(Debug)]
pub struct Heard {
    pub head: String,
    pub body: Vec<u8>,
}

pub type Ear = mpsc::Sender<Heard>;

impl Receiver {
    /// Answers every request with these bytes.
    pub async fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::doing(move |mut stream, ear| {
            let answer = answer.clone();
            async move {
                while let Some(heard) = Heard::read(&mut stream).await {
                    ear.send(heard).await.unwrap();
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    pub async fn doing<F: Future<Output = ()> + Send>(script: impl Fn(TcpStream, Ear) -> F + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub async fn at<F: Future<Output = ()> + Send>(
        addr: SocketAddr,
        script: impl Fn(TcpStream, Ear) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (ear, heard) = mpsc::channel(4096);
        let (accepted, peers) = mpsc::channel(4096);
        let script = Arc::new(script);
        let task = tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                accepted.send(peer).await.unwrap();
                let (script, ear) = (script.clone(), ear.clone());
                tokio::spawn(async move { script(stream, ear).await });
            }
        });
        Self { addr, heard, peers, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub async fn heard(&mut self) -> Heard {
        self.heard.recv().await.unwrap()
    }

    pub fn has_heard_nothing(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }

    /// How many connections there were until now. A connection of its own marks the now.
    pub async fn connections(&mut self) -> usize {
        let mark = TcpStream::connect(self.addr).await.unwrap().local_addr().unwrap();
        let mut count = 0;
        while self.peers.recv().await.unwrap() != mark {
            count += 1;
        }
        count
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Heard {
    /// `None` when the caller has hung up.
    pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let heard = Self { head, body: Vec::new() };
        let mut body = vec![0; heard.header("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        Some(Self { body, ..heard })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| line.split_once(": ")).filter(|(found, _)| *found == name);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} came twice");
        value
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
