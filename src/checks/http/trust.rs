//! Whom the machine trusts: the authorities of Debian's list, and certificates in it.

use super::fault::Fault;
use super::identity::Answerer;
use super::issuer;
use archivist_hooks::page::html::one_line;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Trust {
    config: ClientConfig,
}

impl Trust {
    /// Reads the machine's list of authorities (`SSL_CERT_FILE` and `SSL_CERT_DIR` replace it).
    pub fn of_the_machine() -> Result<Trust, Fault> {
        let trusted = rustls_native_certs::load_native_certs().certs;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|_| {
                let reason = "this machine trusts no authority: install ca-certificates";
                Fault::Tls(reason.to_owned())
            })?;
        let verifier = Verifier { usual, trusted, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Trust { config })
    }

    pub fn config(&self, answerer: &Arc<Answerer>) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        config.client_auth_cert_resolver = answerer.clone();
        Arc::new(config)
    }
}

/// Judges as webpki, which refuses some certificates that browsers accept: those with `CA:TRUE`, and
/// those that are in the machine's list themselves.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = self.usual.verify_server_cert(own, sent, name, ocsp, now);
        let Err(error) = judged.as_ref().map_err(Clone::clone) else {
            return judged;
        };
        let is_unknown = matches!(kind(&error), Some(Refusal::UnknownIssuer));
        if is_unknown && !self.trusted.contains(own) && issuer::is_missing(own, sent) {
            return Err(Error::General(NO_ISSUER.to_owned()));
        }
        let end = issuer::end_of_validity(own).and_then(|end| u64::try_from(end).ok());
        if let Some(end) = end.filter(|end| *end < now.as_secs())
            && matches!(kind(&error), Some(Refusal::IsExpired | Refusal::IsAuthority))
        {
            let not_after = UnixTime::since_unix_epoch(Duration::from_secs(end));
            return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
        }
        let trusted = match kind(&error) {
            Some(Refusal::UnknownIssuer) if self.trusted.contains(own) => &self.trusted[..],
            Some(Refusal::IsAuthority) => &self.trusted[..],
            _ => return judged,
        };
        let algorithms = self.provider.signature_verification_algorithms.all;
        if !issuer::is_trusted(own, sent, trusted, now.as_secs(), algorithms) {
            return judged;
        }
        rustls::client::verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Why a certificate is refused that may be fine with another one.
const NO_ISSUER: &str =
    "the server does not send the certificate of its issuer, which this machine does not trust";

enum Refusal {
    IsExpired,
    UnknownIssuer,
    IsAuthority,
}

fn kind(error: &Error) -> Option<Refusal> {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => Some(Refusal::UnknownIssuer),
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => Some(Refusal::IsExpired),
        // webpki's own errors are not public in rustls.
        Error::InvalidCertificate(CertificateError::Other(inner))
            if inner.0.to_string() == "CaUsedAsEndEntity" =>
        {
            Some(Refusal::IsAuthority)
        }
        _ => None,
    }
}

/// Returns the reason for a TLS failure in plain words.
pub fn in_words(error: &Error) -> String {
    let text = match error {
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the certificate has expired",
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "the certificate is not valid yet",
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "the certificate is for another name",
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no authority that this machine trusts has issued the certificate"
        }
        // webpki names the first problem alone, and not that no trusted authority issued it.
        error if matches!(kind(error), Some(Refusal::IsAuthority)) => {
            "this machine trusts neither the certificate, which is one of an authority, nor its issuer"
        }
        Error::General(text) if text == NO_ISSUER => NO_ISSUER,
        Error::InvalidCertificate(CertificateError::Revoked) => "the certificate was revoked",
        Error::InvalidMessage(_) => "the server does not speak TLS",
        error => return one_line(&error.to_string(), 300),
    };
    text.to_owned()
}
