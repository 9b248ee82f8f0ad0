//! Probes against servers that speak TLS.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version;

use super::probe_tests::{accepted, answer_of, is_plain, probe_served, prober, say};
use crate::readiness::{ProbeOutcome, ProbeRequest};

fn acceptor(
    versions: &[&'static tokio_rustls::rustls::SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> TlsAcceptor {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.example".to_owned()]);
    let signed = signed.expect("a certificate");
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("a pair");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve_tls(acceptor: &TlsAcceptor, stream: TcpStream, answer: &[u8]) {
    // A plain request is refused with an alert.
    if let Ok(stream) = acceptor.accept(stream).await {
        say(stream, answer).await;
    }
}

#[tokio::test]
async fn a_tls_port_is_probed_again_over_tls() {
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let acceptor = acceptor(versions, &[]);
        let answered =
            answer_of(|stream| serve_tls(&acceptor, stream, b"HTTP/1.1 200 OK\r\n\r\n")).await;
        let ProbeOutcome::Http {
            status: 200,
            tls: true,
            ..
        } = answered
        else {
            panic!("{answered:?}");
        };
    }
}

#[tokio::test]
async fn a_server_that_closes_on_plain_requests_is_probed_again_over_tls() {
    let acceptor = acceptor(&[&version::TLS13], &[b"h2", b"http/1.1"]);
    let answered = answer_of(async |stream| {
        let mut first = [0];
        stream.peek(&mut first).await.expect("a byte");
        if first[0] != b'G' {
            serve_tls(&acceptor, stream, b"HTTP/1.1 503 Not Yet\r\n\r\n").await;
        }
    })
    .await;
    let ProbeOutcome::Http {
        status: 503,
        tls: true,
        ..
    } = answered
    else {
        panic!("{answered:?}");
    };
}

#[tokio::test]
async fn a_server_that_explains_in_plain_http_is_probed_again_over_tls() {
    let acceptor = acceptor(&[&version::TLS13], &[]);
    let bad = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    let answered = answer_of(async |stream| {
        let mut first = [0];
        stream.peek(&mut first).await.expect("a byte");
        match first[0] {
            b'G' => say(stream, bad).await,
            _ => serve_tls(&acceptor, stream, b"HTTP/1.1 200 OK\r\n\r\n").await,
        }
    })
    .await;
    let ProbeOutcome::Http {
        status: 200,
        tls: true,
        ..
    } = answered
    else {
        panic!("{answered:?}");
    };
    // And one that means it is believed.
    let answered = answer_of(async |mut stream| {
        let _request = stream.read(&mut [0; 64]).await;
        let _sent = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    assert!(is_plain(&answered, 400), "{answered:?}");
}

#[tokio::test]
async fn tls_first_falls_back_to_plain() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = ProbeRequest::Http {
        address: listener.local_addr().expect("an address"),
        host: "127.0.0.1".to_owned(),
        path: "/".to_owned(),
        tls: true,
        unsure: false,
    };
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.expect("bytes");
        if &first == b"GET" {
            say(stream, b"HTTP/1.1 200 OK\r\n\r\n").await;
        }
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn one_that_speaks_http2_only_is_accepted() {
    let acceptor = acceptor(&[&version::TLS13], &[b"h2"]);
    let answered = answer_of(|stream| serve_tls(&acceptor, stream, b"")).await;
    assert_eq!(answered, accepted("speaks no HTTP"));
}
