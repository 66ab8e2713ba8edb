//! Explains failed connections: tests whether the address filter of the hook's unit refuses an
//! address.

use crate::process::finding::Finding;
use archivist_core::model::{AddressKind, REDIRECT_REFUSED};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;
use url::{Host, Url};

/// Time limit of a name lookup after the hook has failed.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Text that every explanation contains.
const EXPLANATION_MARK: &str = " that hooks do not reach";
/// The discard service (RFC 863), which usually has no listener.
const DISCARD_PORT: u16 = 9;

/// Whether the kernel refuses to send to this address, because of the unit's address filter or the
/// rules of its network namespace. Sends an empty datagram if the kernel allows it: to a server that
/// the hook could not reach, so it seldom arrives.
fn is_refused(ip: IpAddr) -> bool {
    let own: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let sent = UdpSocket::bind((own, 0)).and_then(|socket| socket.send_to(&[], (ip, DISCARD_PORT)));
    sent.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// `archivist hook reach`, for archivist-reach.service, whose unit denies the loopback addresses.
/// The exit status is 0 if the kernel enforces that, else 1.
pub fn test() -> ExitCode {
    if is_refused(Ipv4Addr::LOCALHOST.into()) {
        return ExitCode::SUCCESS;
    }
    eprintln!("the kernel does not enforce IPAddressDeny=");
    ExitCode::FAILURE
}

fn addresses(url: &Url) -> Vec<IpAddr> {
    let name = match url.host() {
        Some(Host::Ipv4(ip)) => return vec![ip.into()],
        Some(Host::Ipv6(ip)) => return vec![ip.into()],
        Some(Host::Domain(name)) => name.to_owned(),
        None => return Vec::new(),
    };
    // The lookup runs in a thread, so that a resolver that does not answer cannot delay the hook's
    // record.
    let (found, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let resolved = (name.as_str(), DISCARD_PORT).to_socket_addrs();
        let all = resolved.into_iter().flatten();
        let _ = found.send(all.map(|address| address.ip()).collect());
    });
    answer.recv_timeout(LOOKUP_TIMEOUT).unwrap_or_default()
}

/// Why hooks do not reach any of these URLs, if the unit's address filter is the cause.
pub fn explain<'a>(urls: impl IntoIterator<Item = &'a Url>) -> Option<String> {
    urls.into_iter().find_map(|url| {
        let host = url.host_str().unwrap_or_default();
        let (ip, kind) = addresses(url)
            .into_iter()
            .map(|ip| (ip, AddressKind::of(ip)))
            .find(|(ip, kind)| *kind == AddressKind::Never || is_refused(*ip))?;
        Some(reason(host, ip, kind))
    })
}

fn reason(host: &str, ip: IpAddr, kind: AddressKind) -> String {
    let shown = host.trim_start_matches('[').trim_end_matches(']');
    let at = if shown == ip.to_string() { shown.to_owned() } else { format!("{shown} is {ip}") };
    if kind == AddressKind::Public {
        return format!(
            "{at}, an address of this machine or of its networks{EXPLANATION_MARK}: Reach={ip} in archivist.conf(5) allows it"
        );
    }
    format!("{at}, an address of {}{EXPLANATION_MARK}: {}", kind.as_text(), kind.remedy())
}

/// Messages of wget and chromium for EACCES and EPERM from connect(2).
const DENIED: [&str; 3] = [
    "failed: Permission denied",
    "failed: Operation not permitted",
    "net::ERR_NETWORK_ACCESS_DENIED",
];

/// Adds the explanation to a failure that the unit's address filter caused.
pub fn with_explanation(finding: Finding, url: Option<&Url>) -> Finding {
    if finding.exit_code() != 1 || finding.output_str.contains(EXPLANATION_MARK) {
        return finding;
    }
    if let Some(why) = explain(url) {
        return finding.because(&why);
    }
    if DENIED.iter().any(|text| finding.output_str.contains(text)) {
        finding.because(&format!("{REDIRECT_REFUSED}: see Reach= in archivist.conf(5)"))
    } else {
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::NetworkError;

    #[test]
    fn failure_without_a_filter_is_not_explained() {
        // No address filter applies to the test process.
        let local = Url::parse("http://127.0.0.1:1/").unwrap();
        assert_eq!(explain([&local]), None);
        let finding = with_explanation(Finding::failed("connection refused"), Some(&local));
        assert_eq!(finding.output_str, "connection refused");
        // A redirect was refused, and the program does not name the address.
        let refused =
            with_explanation(Finding::failed("net::ERR_NETWORK_ACCESS_DENIED"), Some(&local));
        let text = with_explanation(refused, Some(&local)).output_str;
        assert_eq!(NetworkError::of(&text), Some(NetworkError::Portal));
        assert_eq!(
            text,
            format!(
                "net::ERR_NETWORK_ACCESS_DENIED; {REDIRECT_REFUSED}: see Reach= in archivist.conf(5)"
            )
        );
    }

    #[test]
    fn filtered_address_is_named() {
        let meta = Url::parse("http://[::ffff:169.254.169.254]/latest").unwrap();
        let found = with_explanation(Finding::failed("no answer"), Some(&meta)).output_str;
        assert!(found.starts_with("no answer; ::ffff:"), "{found}");
        assert!(found.ends_with("metadata network that hooks do not reach: nothing allows it"));
        let text = reason("wiki.example.com", "10.0.0.7".parse().unwrap(), AddressKind::Private);
        assert_eq!(
            text,
            "wiki.example.com is 10.0.0.7, an address of a private network that hooks do not reach: \
             Reach=private in archivist.conf(5) allows it"
        );
        let own = "93.184.216.34".parse().unwrap();
        let text = reason("blog.example.com", own, AddressKind::Public);
        assert_eq!(
            text,
            "blog.example.com is 93.184.216.34, an address of this machine or of its networks that hooks do not reach: \
             Reach=93.184.216.34 in archivist.conf(5) allows it"
        );
    }
}
