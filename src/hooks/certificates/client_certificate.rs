//! The certificate with which a server recognizes its clients (TLS client authentication): of the
//! settings `CLIENT_CERTIFICATE` and `CLIENT_KEY`, else the file `client.pem` of the persona.
//!
//! All built-in hooks send it, to servers on the hosts of `CLIENT_CERTIFICATE_HOSTS` alone. Without that setting,
//! the orchestrator sets the variable to the hosts of the URLs that users gave to the crawl.

use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use std::fs::File;
use std::path::{Path, PathBuf};
use url::Url;

/// File of a persona that has the certificate and its key.
const OF_PERSONA: &str = "client.pem";
/// Messages of chromium, curl and wget (OpenSSL and GnuTLS) about a server that demands a
/// certificate.
const DEMANDS: [&str; 5] = [
    "ERR_SSL_CLIENT_AUTH_CERT_NEEDED",
    "ERR_BAD_SSL_CLIENT_AUTH_CERT",
    "alert certificate required",
    "Certificate is required",
    "peer did not return a certificate",
];
/// Errors of chromium for a server that ends a connection after the handshake. Since TLS 1.3, the refusal of a
/// certificate comes so late, and may arrive with the end. The first has hardly another cause.
const ENDED: [&str; 5] = [
    "ERR_SOCKET_NOT_CONNECTED",
    "ERR_CONNECTION_CLOSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_SSL_PROTOCOL_ERROR",
];
/// What a failure says about such a server if it got no certificate, and if it got one.
const DEMANDED: &str = "the server demands a client certificate; set CLIENT_CERTIFICATE";
const REFUSED: &str = "the server does not accept the client certificate";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// File with the certificate, and those of its issuers if any.
    pub certificate: PathBuf,
    /// File with the key, which may be the same.
    pub key: PathBuf,
    pub hosts: Vec<CertificateHost>,
}

impl ClientCertificate {
    /// Whether every server gets it.
    pub fn is_for_all(&self) -> bool {
        self.hosts.contains(&CertificateHost::All)
    }

    pub fn is_for(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.hosts.iter().any(|one| one.admits(host))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateHost {
    All,
    /// This host alone.
    Host(String),
    /// This domain, and all below.
    Domain(String),
}

impl CertificateHost {
    fn parse(text: &str) -> CertificateHost {
        let text = text.trim().to_ascii_lowercase();
        match (text.as_str(), text.strip_prefix("*.")) {
            ("*", _) => CertificateHost::All,
            (_, Some(domain)) => CertificateHost::Domain(domain.to_owned()),
            (_, None) => CertificateHost::Host(text),
        }
    }

    fn admits(&self, host: &str) -> bool {
        match self {
            CertificateHost::All => true,
            CertificateHost::Host(own) => host == own,
            CertificateHost::Domain(domain) => {
                let before = host.strip_suffix(domain.as_str());
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
        }
    }
}

/// The hosts of the setting; without any, that of the page.
fn hosts(invocation: &Invocation) -> Vec<CertificateHost> {
    let named = invocation.settings.list("CLIENT_CERTIFICATE_HOSTS");
    if !named.is_empty() {
        return named.iter().map(|one| CertificateHost::parse(one)).collect();
    }
    let url = Url::parse(&invocation.url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.map(CertificateHost::parse).into_iter().collect()
}

/// The certificate for the servers of this run, if there is one. Fails if a setting names a file that
/// cannot be read.
pub fn of(invocation: &Invocation) -> Result<Option<ClientCertificate>, Finding> {
    let path = |name: &str| Some(invocation.settings.text(name)).filter(|text| !text.is_empty());
    let Some(certificate) = path("CLIENT_CERTIFICATE").map(PathBuf::from) else {
        let file = of_persona(invocation);
        return Ok(file.map(|file| ClientCertificate {
            key: file.clone(),
            certificate: file,
            hosts: hosts(invocation),
        }));
    };
    let key = path("CLIENT_KEY").map_or_else(|| certificate.clone(), PathBuf::from);
    for file in [&certificate, &key] {
        File::open(file).map_err(|error| {
            let file = file.display();
            Finding::failed(format!("failed to read the client certificate '{file}': {error}"))
        })?;
    }
    Ok(Some(ClientCertificate { certificate, key, hosts: hosts(invocation) }))
}

fn of_persona(invocation: &Invocation) -> Option<PathBuf> {
    let all = invocation.settings.variable("PERSONAS_DIR")?;
    let name = invocation.settings.text("ACTIVE_PERSONA");
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return None;
    }
    let file = Path::new(all).join(name).join(OF_PERSONA);
    file.is_file().then_some(file)
}

/// Whether a message is about a server that demands a certificate.
pub fn is_demanded(message: &str) -> bool {
    DEMANDS.iter().any(|text| message.contains(text))
}

/// Why such a server does not answer.
pub fn reason(invocation: &Invocation) -> &'static str {
    match of(invocation) {
        Ok(None) => DEMANDED,
        _ => REFUSED,
    }
}

/// Whether a message is about a connection that the server of the page may have ended for a certificate.
fn may_be_demanded(message: &str, invocation: &Invocation) -> bool {
    let Ok(url) = Url::parse(&invocation.url) else {
        return false;
    };
    let got_one = || of(invocation).ok().flatten().is_some_and(|own| own.is_for(&url));
    let known = if url.scheme() != "https" {
        &[]
    } else if got_one() {
        &ENDED[..]
    } else {
        &ENDED[..1]
    };
    known.iter().any(|text| message.contains(text))
}

/// Appends the reason to the message of a failure if the server demands a certificate, or may do so.
pub fn with_explanation(finding: Finding, invocation: &Invocation) -> Finding {
    if finding.exit_code() != 1 {
        return finding;
    }
    if is_demanded(&finding.output_str) {
        return finding.because(reason(invocation));
    }
    if may_be_demanded(&finding.output_str, invocation) {
        let why = reason(invocation);
        return finding.because(&format!("the connection was ended, perhaps because {why}"));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(environment: &[(&str, &Path)]) -> Invocation {
        let environment =
            environment.iter().map(|(key, value)| (key.into(), value.as_os_str().into()));
        let schema = include_str!("../../../plugins/wget/config.json");
        Invocation::read("wget", schema, &[], environment)
    }

    #[test]
    fn setting_precedes_the_file_of_the_persona() {
        let top = tempfile::tempdir().unwrap();
        let persona = top.path().join("Default/client.pem");
        let without = invocation(&[("PERSONAS_DIR", top.path())]);
        assert_eq!(of(&without).unwrap(), None);
        std::fs::create_dir(persona.parent().unwrap()).unwrap();
        std::fs::write(&persona, "x").unwrap();
        let found = of(&without).unwrap().unwrap();
        assert_eq!((&found.certificate, &found.key), (&persona, &persona));
        let own = top.path().join("own.pem");
        let both = invocation(&[("PERSONAS_DIR", top.path()), ("CLIENT_CERTIFICATE", &own)]);
        let reason = of(&both).unwrap_err().output_str;
        let start = format!("failed to read the client certificate '{}'", own.display());
        assert!(reason.starts_with(&start), "{reason}");
        std::fs::write(&own, "x").unwrap();
        assert_eq!(of(&both).unwrap().unwrap().key, own);
    }

    #[test]
    fn certificate_is_for_the_hosts_of_the_setting_or_that_of_the_page() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("own.pem");
        std::fs::write(&own, "x").unwrap();
        let admitted = |hosts: &str| -> Vec<&str> {
            let environment = [
                ("CLIENT_CERTIFICATE", own.as_os_str().into()),
                ("CLIENT_CERTIFICATE_HOSTS", hosts.into()),
            ]
            .map(|(key, value): (&str, std::ffi::OsString)| (key.into(), value));
            let schema = include_str!("../../../plugins/wget/config.json");
            let url = ["--url=https://page.test:8443/a".to_owned()];
            let found = of(&Invocation::read("wget", schema, &url, environment));
            let found = found.unwrap().unwrap();
            let all = ["page.test", "www.page.test", "corp.test", "a.corp.test", "xcorp.test"];
            let is_for =
                |host: &&str| found.is_for(&Url::parse(&format!("https://{host}/")).unwrap());
            all.into_iter().filter(is_for).collect()
        };
        assert_eq!(admitted(""), ["page.test"]);
        assert_eq!(admitted("[]"), ["page.test"]);
        assert_eq!(admitted("*.corp.test"), ["corp.test", "a.corp.test"]);
        assert_eq!(admitted(r#"["Corp.test", "www.page.test"]"#), ["www.page.test", "corp.test"]);
        assert_eq!(admitted("*").len(), 5);
    }

    #[test]
    fn demand_of_a_server_is_named() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("own.pem");
        std::fs::write(&own, "x").unwrap();
        let without = invocation(&[]);
        let with = invocation(&[("CLIENT_CERTIFICATE", &own)]);
        for text in [
            "net::ERR_SSL_CLIENT_AUTH_CERT_NEEDED",
            "curl: (56) tlsv13 alert certificate required, errno 0",
        ] {
            let explained = |by| with_explanation(Finding::failed(text), by).output_str;
            assert_eq!(explained(&without), format!("{text}; {DEMANDED}"));
            assert_eq!(explained(&with), format!("{text}; {REFUSED}"));
        }
        let other = with_explanation(Finding::failed("certificate expired"), &without);
        assert_eq!(other.output_str, "certificate expired");
    }

    #[test]
    fn connection_that_ends_after_the_handshake_may_be_refused() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("own.pem");
        std::fs::write(&own, "x").unwrap();
        let explained = |text: &str, url: &str, certificate: &str| {
            let environment = [("CLIENT_CERTIFICATE".into(), certificate.into())];
            let schema = include_str!("../../../plugins/wget/config.json");
            let by = Invocation::read("wget", schema, &[format!("--url={url}")], environment);
            with_explanation(Finding::failed(text), &by).output_str
        };
        let own = own.to_str().unwrap();
        let why = "; the connection was ended, perhaps because ";
        let text = "net::ERR_SOCKET_NOT_CONNECTED";
        assert_eq!(explained(text, "https://a.test/", ""), format!("{text}{why}{DEMANDED}"));
        assert_eq!(explained(text, "https://a.test/", own), format!("{text}{why}{REFUSED}"));
        assert_eq!(explained(text, "http://a.test/", own), text);
        let text = "net::ERR_CONNECTION_RESET";
        assert_eq!(explained(text, "https://a.test/", own), format!("{text}{why}{REFUSED}"));
        assert_eq!(explained(text, "https://a.test/", ""), text);
    }
}
