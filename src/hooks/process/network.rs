//! Tells a site that is down from a machine that does not reach the Internet: whether a name server answers,
//! and whether a route leads there.

use crate::process::finding::Finding;
use archivist_core::model::web::network_error::NAME_SERVER_ANSWERS;
use archivist_core::model::web::reach::{Hosts, nameservers};
use archivist_core::model::{NetworkError, is_on_internet};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;
use url::Url;

/// Field of a record that says why the machine, and not the site, is to blame.
pub const FIELD: &str = "network_fault";
/// Where glibc finds the name servers (resolv.conf(5)), and names without them (hosts(5)).
const RESOLVERS: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
/// What glibc asks without a file, or without a server in it.
const DEFAULT_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const DNS_PORT: u16 = 53;
/// Servers that glibc asks (MAXNS of resolv.h).
const SERVERS_MAX: usize = 3;
/// Datagrams may be lost.
const TRIES: u32 = 2;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Response code of a server that could not ask others (RFC 1035, section 4.1.1).
const SERVER_FAILURE: u8 = 2;
/// Addresses for documentation (RFC 5737, RFC 3849): only a default route leads there.
const ELSEWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Adds the reason to a failure that is the machine's, or that it is not.
pub fn with_explanation(finding: Finding, url: Option<&Url>) -> Finding {
    if finding.exit_code() != 1 || finding.has(FIELD) {
        return finding;
    }
    match url.and_then(|url| judge(&finding.output_str, url)) {
        Some(Judgement::Machine(why)) => finding.because(&why).with(FIELD, why),
        Some(Judgement::Name) => finding.because(NAME_SERVER_ANSWERS),
        None => finding,
    }
}

/// Why the machine is to blame for this error of a request for this URL, if it is.
pub fn excuse(message: &str, url: &Url) -> Option<String> {
    match judge(message, url)? {
        Judgement::Machine(why) => Some(why),
        Judgement::Name => None,
    }
}

/// Whose fault an error of a site on the Internet is.
enum Judgement {
    /// The machine's, for this reason.
    Machine(String),
    /// There is no such name.
    Name,
}

fn judge(message: &str, url: &Url) -> Option<Judgement> {
    let error = NetworkError::of(message)?;
    let hosts = Hosts::parse(&fs::read_to_string(HOSTS).unwrap_or_default());
    if !is_on_internet(url.as_str(), &hosts) {
        return None;
    }
    match error {
        NetworkError::Name => Some(lack_of_names().map_or(Judgement::Name, Judgement::Machine)),
        NetworkError::Unreachable => lack_of_route().map(str::to_owned).map(Judgement::Machine),
        NetworkError::TimedOut
        | NetworkError::Refused
        | NetworkError::Certificate
        | NetworkError::Portal => None,
    }
}

/// Why no name can be resolved, if so. Asks the name servers for those of the root, which each of them
/// knows or asks others for.
fn lack_of_names() -> Option<String> {
    let mut servers = nameservers(&fs::read_to_string(RESOLVERS).unwrap_or_default());
    servers.truncate(SERVERS_MAX);
    if servers.is_empty() {
        servers.push(DEFAULT_SERVER);
    }
    let servers = servers.into_iter().map(|ip| SocketAddr::new(ip, DNS_PORT));
    lack_of_servers(&servers.collect::<Vec<_>>())
}

fn lack_of_servers(servers: &[SocketAddr]) -> Option<String> {
    let answers = thread::scope(|scope| {
        let asked = servers.iter().map(|server| scope.spawn(|| answers(*server)));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().any(|answer| answer.join().unwrap_or(false))
    });
    if answers {
        return None;
    }
    let why = match lack_of_route() {
        Some(why) => why.to_owned(),
        None => {
            let named: Vec<String> = servers.iter().map(|server| server.ip().to_string()).collect();
            format!("no name server answers ({})", named.join(", "))
        }
    };
    Some(format!("names cannot be resolved: {why}"))
}

/// Why no address of the Internet can be reached, if so. Connecting a datagram socket sends nothing.
fn lack_of_route() -> Option<&'static str> {
    let leads = |ip: IpAddr| {
        let connected = socket(ip).and_then(|socket| socket.connect((ip, DNS_PORT)));
        !connected.is_err_and(|error| {
            let none = [ErrorKind::NetworkUnreachable, ErrorKind::AddrNotAvailable];
            none.contains(&error.kind()) || error.kind() == ErrorKind::Unsupported
        })
    };
    (!ELSEWHERE.into_iter().any(leads)).then_some("no route leads to the Internet")
}

fn socket(to: IpAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
}

/// Whether a name server answers, other than that it failed.
fn answers(server: SocketAddr) -> bool {
    (0..TRIES).any(|_| ask(server).unwrap_or(false))
}

fn ask(server: SocketAddr) -> io::Result<bool> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    let socket = socket(server.ip())?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    socket.send(&question(id))?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(is_answer(answer.get(..length).unwrap_or_default(), id))
}

/// A question (RFC 1035, section 4.1) for the name servers of the root, with recursion.
fn question(id: [u8; 2]) -> [u8; 17] {
    let mut question = [0; 17];
    question[..2].copy_from_slice(&id);
    // RD; one question; the name of no bytes; NS; IN.
    (question[2], question[5], question[14], question[16]) = (1, 1, 2, 1);
    question
}

fn is_answer(datagram: &[u8], id: [u8; 2]) -> bool {
    match datagram {
        [a, b, flags, code, ..] => {
            [*a, *b] == id && flags & 0x80 != 0 && code & 0x0f != SERVER_FAILURE
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name server that answers the next questions with this response code, or not at all.
    fn server(code: Option<u8>) -> (SocketAddr, UdpSocket) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let own = server.try_clone().unwrap();
        if let Some(code) = code {
            thread::spawn(move || {
                let mut question = [0; 512];
                while let Ok((length, from)) = own.recv_from(&mut question) {
                    let mut answer = question[..length].to_vec();
                    (answer[2], answer[3]) = (0x81, 0x80 | code);
                    let _ = own.send_to(&answer, from);
                }
            });
        }
        (address, server)
    }

    #[test]
    fn one_server_that_answers_is_enough() {
        let (dead, socket) = server(None);
        drop(socket);
        let (failing, _failing) = server(Some(SERVER_FAILURE));
        let why = lack_of_servers(&[dead, failing]).unwrap();
        assert!(why.starts_with("names cannot be resolved: no "), "{why}");
        // NOERROR, NXDOMAIN, REFUSED.
        for code in [0, 3, 5] {
            let (alive, _alive) = server(Some(code));
            assert_eq!(lack_of_servers(&[dead, alive, failing]), None, "{code}");
        }
    }

    #[test]
    fn question_is_that_of_the_standard() {
        let root = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
        assert_eq!(question([7, 9]), root);
        assert!(!is_answer(&root, [7, 9]), "the question itself");
        assert!(!is_answer(&[7, 8, 0x81, 0x80], [7, 9]), "of another question");
        assert!(!is_answer(&[7], [7, 9]));
    }

    #[test]
    fn sites_that_need_no_internet_are_never_excused() {
        for url in ["http://page.test/", "http://127.0.0.1:9/", "http://nas.lan/"] {
            let url = Url::parse(url).unwrap();
            let failed = Finding::failed("net::ERR_NAME_NOT_RESOLVED");
            assert!(!with_explanation(failed, Some(&url)).has(FIELD), "{url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_panics(datagram: Vec<u8>, id: [u8; 2]) {
            let _ = is_answer(&datagram, id);
        }
    }
}
