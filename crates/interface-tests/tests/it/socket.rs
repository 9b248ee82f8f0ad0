//! A WebSocket client of a session's terminal.
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::common::PATIENCE;

pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// A connection.
pub(crate) struct TestWebSocket {
    stream: WebSocketStream<Box<dyn ByteStream>>,
    /// All output received.
    pub(crate) shown: Vec<u8>,
    /// Unread messages, oldest first.
    said: Vec<Value>,
    pub(crate) closed: Option<CloseFrame>,
}

/// The status and the body of a handshake that was refused.
pub(crate) type HandshakeRefusal = (u16, Value);

impl TestWebSocket {
    pub(crate) async fn open(
        line: impl ByteStream + 'static,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, HandshakeRefusal> {
        let mut request = format!("ws://127.0.0.1{path}")
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let line: Box<dyn ByteStream> = Box::new(line);
        match timeout(PATIENCE, client_async(request, line))
            .await
            .unwrap()
        {
            Ok((stream, _)) => Ok(Self {
                stream,
                shown: Vec::new(),
                said: Vec::new(),
                closed: None,
            }),
            Err(Error::Http(answer)) => {
                let (parts, body) = answer.into_parts();
                let body = serde_json::from_slice(&body.unwrap_or_default());
                Err((parts.status.as_u16(), body.unwrap_or_default()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn tcp(
        address: std::net::SocketAddr,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, HandshakeRefusal> {
        let line = TcpStream::connect(address).await.unwrap();
        Self::open(line, path, headers).await
    }

    pub(crate) async fn type_in(&mut self, keys: &str) {
        let keys = Message::Binary(keys.as_bytes().to_vec().into());
        self.stream.send(keys).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let text = Message::Text(message.to_string().into());
        self.stream.send(text).await.unwrap();
    }

    /// Acquires the lease, and waits until it is granted.
    pub(crate) async fn take_lease(&mut self, name: &str) {
        self.send(json!({"type": "take", "name": name})).await;
        let lease = self.wait_message("lease").await;
        assert_eq!(
            (&lease["yours"], &lease["holder"]),
            (&json!(true), &json!(name)),
            "{lease}"
        );
    }

    /// Receives one more message; false at the end.
    async fn next(&mut self) -> bool {
        let message = timeout(PATIENCE, self.stream.next()).await;
        match message.expect("a message in time") {
            Some(Ok(Message::Binary(bytes))) => self.shown.extend_from_slice(&bytes),
            Some(Ok(Message::Text(text))) => self.said.push(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(frame))) => self.closed = frame,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Err(_)) | None => return false,
        }
        true
    }

    /// The next message of this type.
    pub(crate) async fn wait_message(&mut self, kind: &str) -> Value {
        loop {
            if let Some(place) = self.said.iter().position(|it| it["type"] == kind) {
                return self.said.remove(place);
            }
            assert!(
                self.next().await,
                "'{kind}' was never said: {:?}",
                self.said
            );
        }
    }

    /// Reads until this text was received.
    pub(crate) async fn wait_output(&mut self, text: &str) {
        let mut looked = 0;
        loop {
            let from = self.shown[looked..].windows(text.len());
            if from.into_iter().any(|window| window == text.as_bytes()) {
                return;
            }
            looked = self.shown.len().saturating_sub(text.len());
            assert!(self.next().await, "'{text}' was never shown");
        }
    }

    /// Reads to the end; returns the unread messages.
    pub(crate) async fn end(&mut self) -> Vec<Value> {
        while self.next().await {}
        std::mem::take(&mut self.said)
    }

    pub(crate) async fn close(mut self) {
        drop(self.stream.close(None).await);
        while self.next().await {}
    }
}
