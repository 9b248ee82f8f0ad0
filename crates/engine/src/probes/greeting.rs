//! Servers that speak first: mail, file transfer, shells and some databases send a greeting as
//! soon as they accept a connection, and log a request that they get before it as an attack.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How long an accepted connection is listened to, in milliseconds.
const ACCEPTED_WAIT_MS: u64 = 15;
/// How long one is listened to that may still be in the accept queue, in milliseconds.
const QUEUED_WAIT_MS: u64 = 100;

/// Whether the server speaks first. A connection that `is_accepted` is listened to for 15 ms,
/// another for 100 ms: the kernel completes the handshake of programs that do not accept yet. Data
/// stay in the socket.
pub(super) async fn is_sent(stream: &TcpStream, is_accepted: impl Future<Output = bool>) -> bool {
    let until = Instant::now() + Duration::from_millis(QUEUED_WAIT_MS);
    let mut byte = [0];
    let early = Duration::from_millis(ACCEPTED_WAIT_MS);
    if let Ok(peeked) = timeout(early, stream.peek(&mut byte)).await {
        return matches!(peeked, Ok(1..));
    }
    if is_accepted.await {
        return false;
    }
    matches!(timeout_at(until, stream.peek(&mut byte)).await, Ok(Ok(1..)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
        (client.expect("connected"), server.expect("accepted").0)
    }

    #[tokio::test]
    async fn a_greeting_is_found_and_stays_in_the_socket() {
        let (client, mut server) = connected().await;
        server.write_all(b"220 ready\r\n").await.expect("sent");
        assert!(is_sent(&client, async { true }).await);
        let mut line = [0; 11];
        assert_eq!(client.peek(&mut line).await.expect("readable"), 11);
    }

    #[tokio::test]
    async fn a_queued_connection_is_listened_to_for_longer() {
        let (client, mut server) = connected().await;
        let greeted = is_sent(&client, async {
            server.write_all(b"220 ready\r\n").await.expect("sent");
            false
        });
        assert!(greeted.await);
    }

    #[tokio::test]
    async fn silence_and_a_closed_connection_are_no_greeting() {
        let (client, server) = connected().await;
        assert!(!is_sent(&client, async { true }).await);
        assert!(!is_sent(&client, async { false }).await);
        drop(server);
        assert!(!is_sent(&client, async { unreachable!("known already") }).await);
    }
}
