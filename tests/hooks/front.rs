//! A proxy in front of a test site that speaks HTTP/2 over TLS 1.3 alone.

use h2::server::SendResponse;
use http::{HeaderName, Request, Response};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Starts a proxy for the site at `host`. Returns its address. It ends with the process.
pub fn start(host: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("https://{}/", listener.local_addr().unwrap());
    let (acceptor, host) = (TlsAcceptor::from(Arc::new(config())), host.to_owned());
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                // A browser that closes a connection is no fault.
                tokio::spawn(serve(stream, acceptor.clone(), host.clone()));
            }
        });
    });
    address
}

fn config() -> ServerConfig {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(names).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, host: String) -> Outcome<()> {
    let mut connection = h2::server::handshake(acceptor.accept(stream).await?).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        tokio::spawn(forward(request, respond, host.clone()));
    }
    Ok(())
}

/// Sends a request to the site in HTTP/1.1, and its whole answer back.
async fn forward(
    request: Request<h2::RecvStream>,
    mut respond: SendResponse<bytes::Bytes>,
    host: String,
) -> Outcome<()> {
    let (head, mut incoming) = request.into_parts();
    let mut posted = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece?;
        incoming.flow_control().release_capacity(piece.len())?;
        posted.extend_from_slice(&piece);
    }
    if head.uri.path() == "/hinted" {
        let hint = Response::builder().status(103);
        let hint = hint.header("link", "</hinted.css>; rel=preload; as=style");
        respond.send_informational(hint.body(())?)?;
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = head.uri.authority().map_or("", |own| own.as_str());
    let mut text = format!(
        "{} {path} HTTP/1.1\r\nHost: {authority}\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\
         Content-Length: {}\r\n",
        head.method,
        posted.len()
    );
    for (name, value) in &head.headers {
        if name != "content-length" {
            text += &format!("{name}: {}\r\n", value.to_str()?);
        }
    }
    let mut site = TcpStream::connect(host).await?;
    site.write_all(&[text.as_bytes(), b"\r\n", &posted].concat()).await?;
    let mut answer = Vec::new();
    site.read_to_end(&mut answer).await?;
    let (response, body) = parse(&answer)?;
    let mut sending = respond.send_response(response, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body.into(), true)?;
    }
    Ok(())
}

/// Parses a whole answer of HTTP/1.1. Returns it without the headers of the connection.
fn parse(answer: &[u8]) -> Outcome<(Response<()>, Vec<u8>)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or("the answer has no end of its head")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let mut body = &answer[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut response = Response::builder().status(status.unwrap_or_default());
    let mut is_chunked = false;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        match name.to_ascii_lowercase().as_str() {
            "connection" => {}
            "transfer-encoding" => is_chunked = true,
            name => response = response.header(HeaderName::try_from(name)?, value),
        }
    }
    let mut whole = Vec::new();
    while is_chunked {
        let line = body.windows(2).position(|two| two == b"\r\n");
        let line = line.ok_or("a chunk has no length")?;
        let length = usize::from_str_radix(std::str::from_utf8(&body[..line])?, 16)?;
        whole.extend_from_slice(&body[line + 2..][..length]);
        body = &body[line + 4 + length..];
        is_chunked = length > 0;
    }
    whole.extend_from_slice(body);
    Ok((response.body(())?, whole))
}
