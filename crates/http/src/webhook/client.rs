//! One attempt over HTTP/1.1, or over TLS with the server's certificate verified.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, version};

use super::delivery::Delivery;
use super::retry::AttemptOutcome;
use super::settings::{WebhookError, WebhookSettings};

/// The longest attempt, from the name's lookup to the head of the answer.
const ATTEMPT_MS: u64 = 10_000;

/// A connection, encrypted or not: one copy of HTTP's client serves both.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Posts deliveries.
#[derive(Debug)]
pub(super) struct WebhookClient {
    settings: WebhookSettings,
    tls: Option<Arc<ClientConfig>>,
}

impl WebhookClient {
    /// Reads the certificates, where TLS is used.
    pub(super) fn new(settings: WebhookSettings) -> Result<Self, WebhookError> {
        let tls = match settings.url.is_tls {
            true => Some(Arc::new(tls_config(&settings)?)),
            false => None,
        };
        Ok(Self { settings, tls })
    }

    pub(super) const fn settings(&self) -> &WebhookSettings {
        &self.settings
    }

    /// Posts a delivery once.
    pub(super) async fn attempt(&self, delivery: &Delivery) -> AttemptOutcome {
        let limit = Duration::from_millis(ATTEMPT_MS);
        match tokio::time::timeout(limit, self.post(delivery)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                tracing::info!(%error, "an alert was not posted");
                AttemptOutcome::NoAnswer
            }
            Err(_) => AttemptOutcome::NoAnswer,
        }
    }

    async fn post(&self, delivery: &Delivery) -> io::Result<AttemptOutcome> {
        let url = &self.settings.url;
        let host = url.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, url.port)).await?;
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(stream),
            Some(config) => {
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                let connector = TlsConnector::from(Arc::clone(config));
                Box::new(connector.connect(name, stream).await?)
            }
        };
        self.exchange(delivery, stream).await
    }

    async fn exchange(
        &self,
        delivery: &Delivery,
        stream: Box<dyn ByteStream>,
    ) -> io::Result<AttemptOutcome> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let mut connections = JoinSet::new();
        // A broken connection shows in the response.
        connections.spawn(async move { drop(connection.await) });
        let request = self.request(delivery).map_err(io::Error::other)?;
        let response = sender.send_request(request).await;
        Ok(outcome(&response.map_err(io::Error::other)?))
    }

    fn request(&self, delivery: &Delivery) -> http::Result<Request<Full<Bytes>>> {
        let WebhookSettings { url, secret, .. } = &self.settings;
        Request::post(url.path.as_str())
            .header(header::HOST, format!("{}:{}", url.host, url.port))
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("ostler/", env!("CARGO_PKG_VERSION")),
            )
            .header("ostler-delivery", delivery.id.to_string())
            .header(
                "ostler-signature",
                delivery.signature(secret, Timestamp::now()),
            )
            .body(Full::new(Bytes::copy_from_slice(&delivery.body)))
    }
}

fn outcome(response: &http::Response<Incoming>) -> AttemptOutcome {
    let requested = response.headers().get(header::RETRY_AFTER);
    // A date is not read: the receiver's clock may be another.
    let seconds = requested.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    AttemptOutcome::Status(response.status().as_u16(), seconds.map(Duration::from_secs))
}

fn tls_config(settings: &WebhookSettings) -> Result<ClientConfig, WebhookError> {
    let path = settings.ca_path();
    let error = |problem: String| WebhookError::Certificates {
        path: path.clone(),
        problem,
    };
    let certificates = CertificateDer::pem_file_iter(&path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|problem| error(problem.to_string()))?;
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(error("there is none in it".to_owned()));
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(|problem| error(problem.to_string()))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
