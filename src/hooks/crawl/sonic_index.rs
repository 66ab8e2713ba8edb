//! The sonic server of the archive, which all crawls use.
//!
//! Each crawl that requests a server gets a forwarder: it listens where the hooks of the crawl
//! expect the server, in their network, and passes connections on to a Unix socket. systemd owns
//! that socket and starts the server for the first connection, on the machine in a network of its
//! own; without connections, the server ends. Neither belongs to a crawl or to the orchestrator.
//!
//! systemd-socket-proxyd(8) would lose the first connection: it connects once, to a fixed address, and sonic
//! does not report when it listens, at an address that only the configuration of the plugin has.

use super::{peer, sonic_config};
use crate::process::finding;
use crate::process::finding::Finding;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

/// Socket of the server, in the directory of the index.
const SOCKET: &str = "server.socket";
/// Configuration that the plugin writes there.
const CONFIG: &str = "sonic/config.cfg";
/// Time without connections after which the server ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for the server to listen after its start. It reports nothing when it does.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Delay between two attempts to reach a server that starts.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Time for the server to write its index after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections that the kernel holds until they are accepted.
const BACKLOG: u32 = 128;

/// Returns the socket of the archive's server if it serves this configuration.
pub fn socket_for(config: &str) -> Option<PathBuf> {
    let index = Path::new(config).ancestors().nth(2)?;
    let socket = index.join(SOCKET);
    (index.join(CONFIG) == Path::new(config) && socket.exists()).then_some(socket)
}

/// Passes connections to `host` and `port` on to the server until SIGTERM.
pub fn forward(host: &str, port: u16, socket: &Path) -> Finding {
    let forwarded = block_on(async {
        let listener = listen(host, port)?;
        let mut stop = signal(SignalKind::terminate())?;
        finding::progress(&format!("forwarding {host}:{port} to the index of the archive"));
        forward_until(listener, socket, is_of_own_user, async {
            let _ = stop.recv().await;
        })
        .await
    });
    match forwarded {
        Ok(()) => Finding::noresults("forwarded connections to the index of the archive"),
        Err(error) => Finding::failed(format!("failed to forward {host}:{port}: {error}")),
    }
}

fn block_on<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work)
}

/// Listens at an address at which forwarders of other crawls may listen too: without networks of
/// their own, crawls share the loopback interface, and any of their forwarders serves all.
fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let unknown = || io::Error::other("the host has no address");
    let address = (host, port).to_socket_addrs()?.next().ok_or_else(unknown)?;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether the other end of a connection belongs to this user: the hooks of the plugin run as the user
/// of the index, and without a network of the crawl's own, all users of the machine can connect.
fn is_of_own_user(stream: &TcpStream, from: SocketAddr) -> bool {
    let user = stream.local_addr().and_then(|own| peer::user(from, own));
    let is_own = |user: u32| user == nix::unistd::geteuid().as_raw();
    match user {
        Ok(user) => user.is_some_and(is_own),
        Err(error) => {
            eprintln!("failed to read the user of a connection: {error}");
            false
        }
    }
}

/// Forwards connections that `accept` allows until `stop`, and then until the last connection ends:
/// another crawl may have it.
async fn forward_until(
    listener: TcpListener,
    socket: &Path,
    accept: impl Fn(&TcpStream, SocketAddr) -> bool,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut open = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, from) = accepted?;
                if !accept(&stream, from) {
                    eprintln!("refused a connection of another user");
                    continue;
                }
                let socket = socket.to_owned();
                open.spawn(async move {
                    pass_on(stream, UnixStream::connect(socket).await).await;
                });
            }
            Some(_) = open.join_next() => {}
            () = &mut stop => break,
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// Copies in both directions until both ends are closed.
async fn pass_on(
    mut from: impl AsyncRead + AsyncWrite + Unpin,
    to: io::Result<impl AsyncRead + AsyncWrite + Unpin>,
) {
    let copied = match to {
        Ok(mut to) => copy_bidirectional(&mut from, &mut to).await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = copied {
        eprintln!("failed to pass a connection on: {error}");
    }
}

/// Runs the server for the socket that is standard input, in the directory of the index. Returns 0
/// after [`IDLE_TIMEOUT`] without connections, and 1 if the server fails.
pub fn serve() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let index = PathBuf::from(variable("DATA_DIR"));
    let program = match variable("SONIC_BINARY") {
        program if program.is_empty() => "sonic".to_owned(),
        program => program,
    };
    let served = block_on(async {
        let socket = StdListener::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        let listener = UnixListener::from_std(socket)?;
        serve_until_idle(listener, &index.join(CONFIG), &program, IDLE_TIMEOUT).await
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed to run {program}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve_until_idle(
    listener: UnixListener,
    config: &Path,
    program: &str,
    idle: Duration,
) -> io::Result<()> {
    let (config, address) = sonic_config::usable(config)?;
    let mut server = Command::new(program)
        .arg("-c")
        .arg(config)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                open.spawn(async move { pass_on(stream, reach(address).await).await });
            }
            Some(_) = open.join_next() => {}
            ended = server.wait() => {
                return Err(io::Error::other(format!("it ended: {}", ended?)));
            }
            () = sleep(idle), if open.is_empty() => return stop(server).await,
        }
    }
}

/// Connects to a server that may just have been started.
async fn reach(address: SocketAddr) -> io::Result<TcpStream> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match timeout_at(deadline, TcpStream::connect(address)).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Ok(connected) => return connected,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Ends the server with SIGTERM, so that it writes its index.
async fn stop(mut server: Child) -> io::Result<()> {
    let pid = server.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid {
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
    }
    match timeout_at(Instant::now() + STOP_TIMEOUT, server.wait()).await {
        Ok(ended) => ended.map(drop),
        Err(_) => server.kill().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    #[test]
    fn only_the_configuration_of_the_archive_has_a_socket() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name).to_string_lossy().into_owned();
        assert_eq!(socket_for(&path("sonic/config.cfg")), None, "no socket");
        std::fs::write(path("server.socket"), "").unwrap();
        let socket = socket_for(&path("sonic/config.cfg"));
        assert_eq!(socket, Some(top.path().join("server.socket")));
        assert_eq!(socket_for(&path("other/config.cfg")), None);
        assert_eq!(socket_for("/config.cfg"), None);
    }

    /// A server that greets at the address of its configuration, and notes its end.
    fn fake(top: &Path) -> String {
        let program = top.join("sonic-fake");
        let text = format!(
            "#!/usr/bin/python3\nimport pathlib, re, signal, socket, sys\ntop = pathlib.Path('{}')\n\
             port = int(re.search(':(\\\\d+)\"', pathlib.Path(sys.argv[2]).read_text()).group(1))\n\
             def end(*_):\n    (top / 'ended').write_text('x')\n    sys.exit(0)\n\
             signal.signal(signal.SIGTERM, end)\n\
             server = socket.create_server(('127.0.0.1', port))\n\
             while True:\n    stream, _ = server.accept()\n    stream.sendall(b'CONNECTED')\n    stream.close()\n",
            top.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.to_string_lossy().into_owned()
    }

    async fn greeting(port: u16) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    fn free_port() -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn crawls_share_a_server_that_ends_when_idle() {
        let top = tempfile::tempdir().unwrap();
        // Without networks of their own, the forwarders have the address of the server.
        let port = free_port();
        let program = fake(top.path());
        std::fs::create_dir(top.path().join("sonic")).unwrap();
        let config = top.path().join(CONFIG);
        std::fs::write(&config, format!("inet = \"127.0.0.1:{port}\"\n")).unwrap();
        let socket = top.path().join(SOCKET);
        let listener = UnixListener::bind(&socket).unwrap();
        let server = tokio::spawn(async move {
            serve_until_idle(listener, &config, &program, Duration::from_secs(1)).await
        });
        let crawl = || {
            let (stop, stopped) = oneshot::channel::<()>();
            let listener = listen("127.0.0.1", port).unwrap();
            let socket = socket.clone();
            let task = tokio::spawn(async move {
                forward_until(listener, &socket, is_of_own_user, async {
                    let _ = stopped.await;
                })
                .await
            });
            (stop, task)
        };
        let (first, second) = (crawl(), crawl());
        assert_eq!(greeting(port).await, "CONNECTED");
        drop(first.0);
        first.1.await.unwrap().unwrap();
        assert_eq!(greeting(port).await, "CONNECTED", "the first crawl has ended");
        drop(second.0);
        second.1.await.unwrap().unwrap();
        server.await.unwrap().unwrap();
        assert!(top.path().join("ended").exists(), "SIGTERM");
    }

    #[tokio::test]
    async fn connection_of_another_user_does_not_reach_the_server() {
        let top = tempfile::tempdir().unwrap();
        let socket = top.path().join(SOCKET);
        let server = UnixListener::bind(&socket).unwrap();
        let port = free_port();
        let listener = listen("127.0.0.1", port).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let forwarder = tokio::spawn(async move {
            forward_until(listener, &socket, |_, _| false, async {
                let _ = stopped.await;
            })
            .await
        });
        assert_eq!(greeting(port).await, "", "it is closed");
        drop(stop);
        forwarder.await.unwrap().unwrap();
        let accepted = timeout_at(Instant::now(), server.accept()).await;
        assert!(accepted.is_err(), "nothing was passed on");
    }

    #[tokio::test]
    async fn server_that_ends_is_reported() {
        let top = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(top.path().join(SOCKET)).unwrap();
        let config = top.path().join("config");
        std::fs::write(&config, "inet = \"127.0.0.1:1\"\n").unwrap();
        let served = serve_until_idle(listener, &config, "false", IDLE_TIMEOUT).await;
        assert!(served.unwrap_err().to_string().contains("exit status: 1"));
    }
}
