//! The listener: loopback only, with limits on what one caller can take of it.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};

use crate::failure::Failure;
use crate::http::{Call, Reply};
use crate::router;
use crate::service::Service;

/// Largest body, in bytes; larger than any call that AWS takes.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Most connections at once; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 256;
/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the first head of a connection may take: whoever only holds connections keeps no caller out for longer.
/// A connection that has been used may be idle for longer, so that a client's pool isn't closed under a call.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may live; then it is closed after the call under way.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(600);
/// How long the call under way may still take then, and when the server stops.
const LAST_CALL: Duration = Duration::from_secs(30);
/// Pause after a connection couldn't be accepted, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Address; refused unless it is of the loopback.
    pub address: IpAddr,
    /// Port; 0 for any that is free.
    pub port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), port: 0 }
    }
}

/// Why there is no server; one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Other machines could reach it.
    #[error("`{0}` is no address of the loopback: the local Batch runs commands, so it is served on this machine only")]
    NotLoopback(IpAddr),
    /// Somebody else listens there.
    #[error("port {} of {} is in use", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// Anything else.
    #[error("{address} can't be listened on: {cause}")]
    Io {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: String,
    },
}

/// A port that is held, not yet served: nothing is answered before [`Self::serve`].
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// A server that answers, until it is dropped.
#[derive(Debug)]
pub struct Running {
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    /// A sentence when the address isn't of the loopback, or the port can't be had.
    pub fn bind(options: Options) -> Result<Self, ServerError> {
        if !options.address.is_loopback() {
            return Err(ServerError::NotLoopback(options.address));
        }
        let wanted = SocketAddr::new(options.address, options.port);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::InUse(wanted),
            _ => ServerError::Io { address: wanted, cause: error.to_string().to_lowercase() },
        };
        let listener = std::net::TcpListener::bind(wanted).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Such as `http://127.0.0.1:9324`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers calls on a thread of its own.
    ///
    /// # Errors
    /// A sentence when no thread or runtime can be had.
    pub fn serve(self, service: Service) -> Result<Running, ServerError> {
        let address = self.address;
        let failed = |error: io::Error| ServerError::Io { address, cause: error.to_string().to_lowercase() };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // A call that waits for messages keeps a thread.
            .max_blocking_threads(CONNECTIONS_MAX + 8)
            .build()
            .map_err(failed)?;
        let service = Arc::new(service);
        let (stop, stopped) = watch::channel(false);
        let (serving, listener) = (Arc::clone(&service), self.listener);
        let listener = {
            let _guard = runtime.enter();
            TcpListener::from_std(listener).map_err(failed)?
        };
        let thread = std::thread::Builder::new()
            .name("serve".to_owned())
            .spawn(move || {
                runtime.block_on(accept(listener, serving, stopped));
                runtime.shutdown_timeout(LAST_CALL);
            })
            .map_err(failed)?;
        Ok(Running { service, stop, thread: Some(thread) })
    }
}

impl Running {
    /// What it serves.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.service.stop();
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let connection = async {
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?.0, permit))
        };
        tokio::select! {
            biased;
            _ = stopped.changed() => break,
            accepted = connection => match accepted {
                Ok((stream, permit)) => {
                    let (service, stopped) = (Arc::clone(&service), stopped.clone());
                    tokio::spawn(async move {
                        connection_of(stream, service, stopped).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "A connection was not accepted.");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Calls under way are answered.
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(LAST_CALL, permits.acquire_many(all)).await;
}

async fn connection_of(stream: TcpStream, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let asked = Arc::new(Notify::new());
    let first = Arc::clone(&asked);
    let handler = service_fn(move |request| {
        first.notify_one();
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(respond(request, service).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), handler);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => {}
        () = silent(&asked) => return,
        () = tokio::time::sleep(CONNECTION_LIFETIME) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(LAST_CALL, connection).await;
}

/// Returns when no call has come in time; never when one has.
async fn silent(asked: &Notify) {
    if tokio::time::timeout(FIRST_HEAD_TIMEOUT, asked.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

async fn respond(request: Request<Incoming>, service: Arc<Service>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let mut call = Call {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: Bytes::new(),
    };
    let protocol = call.protocol();
    if let Err(failure) = router::admit(&service, &call) {
        return response(Reply::of(protocol, Err(failure)), true);
    }
    match whole(body).await {
        Ok(body) => call.body = body,
        Err(failure) => return response(Reply::of(protocol, Err(failure)), true),
    }
    let answered = tokio::task::spawn_blocking(move || router::answer(&service, &call)).await;
    let reply = answered.unwrap_or_else(|_| Reply::of(protocol, Err(Failure::server(protocol, "Internal failure"))));
    response(reply, false)
}

/// Reads a body, if it isn't too large or too slow.
async fn whole(body: Incoming) -> Result<Bytes, Failure> {
    let too_large = || {
        let message = format!("Request must be smaller than {BODY_BYTES_MAX} bytes.");
        Failure::new(413, "RequestEntityTooLargeException", message)
    };
    let limit = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit {
        return Err(too_large());
    }
    let read = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Failure::serialization("The request ended before its body did")),
        Err(_) => Err(Failure::new(408, "RequestTimeoutException", "The request took too long to arrive")),
    }
}

/// `closing` ends the connection: what is left of the request isn't read.
fn response(reply: Reply, closing: bool) -> Response<Full<Bytes>> {
    let mut builder = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        builder = builder.header(name, value);
    }
    if closing {
        builder = builder.header("connection", "close");
    }
    let body = Full::new(Bytes::from(reply.body.as_bytes().to_vec()));
    builder.body(body).unwrap_or_else(|_| Response::new(Full::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_listened_on() {
        let refusal = |address: &str| Server::bind(Options { address: address.parse().unwrap(), port: 0 });
        for address in ["0.0.0.0", "192.168.0.1", "::"] {
            let sentence = refusal(address).unwrap_err().to_string();
            assert!(sentence.starts_with(&format!("`{address}` is no address of the loopback")), "{sentence}");
        }
        assert!(refusal("127.0.0.1").is_ok());
    }

    #[test]
    fn a_port_in_use_is_one_sentence() {
        let first = Server::bind(Options::default()).unwrap();
        let port = first.address.port();
        let sentence = Server::bind(Options { port, ..Options::default() }).unwrap_err().to_string();
        assert_eq!(sentence, format!("port {port} of 127.0.0.1 is in use"));
    }
}
