//! What the unit of a hook does not let it reach, found out by trying, so that an error can name it.

use crate::process::record::Finding;
use archivist_core::model::AddressKind;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;
use url::{Host, Url};

/// How long looking up a name may take once the hook has failed anyway.
const PATIENCE: Duration = Duration::from_secs(2);
/// What every reason here has.
const REMEDIES: &str = " that hooks do not reach";
/// Where nothing is known of the address.
const ELSEWHERE: &str =
    "it was led to an address that hooks do not reach: see Reach= in archivist.conf(5)";
/// Discard (RFC 863): nothing listens there.
const PORT: u16 = 9;

/// Whether the kernel refuses to send to this address: by the unit's address filter, or by the
/// rules of the network that the unit is in. Where it does not, an empty datagram is sent.
fn is_refused(ip: IpAddr) -> bool {
    let own: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let sent = UdpSocket::bind((own, 0)).and_then(|socket| socket.send_to(&[], (ip, PORT)));
    sent.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// `archivist hook reach`, for archivist-reach.service, which refuses the loopback. The exit status
/// is 0 when that has an effect, 1 when it has none.
pub fn test() -> ExitCode {
    if is_refused(Ipv4Addr::LOCALHOST.into()) {
        return ExitCode::SUCCESS;
    }
    eprintln!("IPAddressDeny= has no effect here");
    ExitCode::FAILURE
}

fn addresses(url: &Url) -> Vec<IpAddr> {
    let name = match url.host() {
        Some(Host::Ipv4(ip)) => return vec![ip.into()],
        Some(Host::Ipv6(ip)) => return vec![ip.into()],
        Some(Host::Domain(name)) => name.to_owned(),
        None => return Vec::new(),
    };
    // A resolver that does not answer must not keep the hook from its record.
    let (found, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let all = (name.as_str(), PORT).to_socket_addrs();
        let all = all.into_iter().flatten().map(|address| address.ip());
        let _ = found.send(all.collect());
    });
    answer.recv_timeout(PATIENCE).unwrap_or_default()
}

/// Why none of this can be reached, if that is the unit's doing.
pub fn explain<'a>(urls: impl IntoIterator<Item = &'a Url>) -> Option<String> {
    urls.into_iter().find_map(|url| {
        let host = url.host_str().unwrap_or_default();
        let all = addresses(url)
            .into_iter()
            .map(|ip| (ip, AddressKind::of(ip)));
        let mut all = all.filter(|(_, kind)| *kind != AddressKind::Public);
        let (ip, kind) = all.find(|(ip, kind)| *kind == AddressKind::Never || is_refused(*ip))?;
        Some(reason(host, ip, kind))
    })
}

fn reason(host: &str, ip: IpAddr, kind: AddressKind) -> String {
    let shown = host.trim_start_matches('[').trim_end_matches(']');
    let at = if shown == ip.to_string() {
        shown.to_owned()
    } else {
        format!("{shown} is {ip}")
    };
    format!(
        "{at}, an address of {} that hooks do not reach: {}",
        kind.owner(),
        kind.remedy()
    )
}

/// What wget and chromium say when the kernel does not let them connect (EACCES, EPERM).
const DENIED: [&str; 3] = [
    "failed: Permission denied",
    "failed: Operation not permitted",
    "net::ERR_NETWORK_ACCESS_DENIED",
];

/// The finding with the reason, if it is a failure that the unit is to blame for.
pub fn explained(finding: Finding, url: Option<&Url>) -> Finding {
    if finding.exit_code() != 1 || finding.output_str.contains(REMEDIES) {
        return finding;
    }
    if let Some(why) = explain(url) {
        return finding.because(&why);
    }
    if DENIED.iter().any(|text| finding.output_str.contains(text)) {
        finding.because(ELSEWHERE)
    } else {
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_refuses_is_not_blamed() {
        // Nothing filters the process that runs tests.
        let local = Url::parse("http://127.0.0.1:1/").unwrap();
        assert_eq!(explain([&local]), None);
        let finding = explained(Finding::failed("connection refused"), Some(&local));
        assert_eq!(finding.output_str, "connection refused");
        // A redirect that was refused, of which the program names no address.
        let refused = explained(
            Finding::failed("net::ERR_NETWORK_ACCESS_DENIED"),
            Some(&local),
        );
        let text = explained(refused, Some(&local)).output_str;
        assert_eq!(text, format!("net::ERR_NETWORK_ACCESS_DENIED; {ELSEWHERE}"));
    }

    #[test]
    fn what_is_never_reached_is_named() {
        let meta = Url::parse("http://[::ffff:169.254.169.254]/latest").unwrap();
        let found = explained(Finding::failed("no answer"), Some(&meta)).output_str;
        assert!(found.starts_with("no answer; ::ffff:"), "{found}");
        assert!(found.ends_with("metadata network that hooks do not reach: nothing allows it"));
        let text = reason(
            "wiki.example.com",
            "10.0.0.7".parse().unwrap(),
            AddressKind::Private,
        );
        assert_eq!(
            text,
            "wiki.example.com is 10.0.0.7, an address of a private network that hooks do not reach: \
             Reach=private in archivist.conf(5) allows it"
        );
    }
}
