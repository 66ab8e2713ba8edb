//! The certificate with which the client proves who it is, for servers that demand one.

use super::fault::{CheckFailure, Fault};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureScheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug)]
pub struct Identity(Arc<CertifiedKey>);

impl Identity {
    /// Reads certificates and the key of the first, both as PEM.
    ///
    /// # Errors
    /// Names what is missing or does not fit.
    pub fn parse(certificates: &[u8], key: &[u8]) -> Result<Identity, String> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("ClientCertificate= is not a certificate in PEM: {error}"))?;
        if chain.is_empty() {
            return Err("ClientCertificate= has no certificate in PEM".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| "ClientKey= has no private key in PEM without a passphrase".to_owned())?;
        let provider = rustls::crypto::ring::default_provider();
        let key = provider.key_provider.load_private_key(key);
        let key = key.map_err(|error| format!("ClientKey= cannot be used: {error}"))?;
        let own = CertifiedKey::new(chain, key);
        // Of a certificate of X.509 version 1, which servers accept, rustls does not know the key.
        if own.keys_match() == Err(InconsistentKeys::KeyMismatch.into()) {
            return Err("ClientKey= is not the key of ClientCertificate=".to_owned());
        }
        Ok(Identity(Arc::new(own)))
    }
}

/// Answers the question for a certificate on one connection, and remembers it.
#[derive(Debug, Default)]
pub struct Answerer {
    identity: Option<Identity>,
    was_asked: AtomicBool,
}

impl Answerer {
    /// Returns what answers with this certificate, if there is one.
    pub fn new(identity: Option<Identity>) -> Answerer {
        Answerer { identity, was_asked: AtomicBool::new(false) }
    }

    /// Returns whether the server asked for a certificate and got none.
    pub fn misses_one(&self) -> bool {
        self.identity.is_none() && self.was_asked.load(Ordering::Relaxed)
    }

    /// Returns the reason for a failure; servers say little about certificates of clients, and some
    /// only close the connection.
    pub fn explain(&self, failure: CheckFailure) -> CheckFailure {
        let was_asked = self.was_asked.load(Ordering::Relaxed);
        let is_about_it = failure.is_end() || matches!(failure, CheckFailure::Fault(Fault::Tls(_)));
        if !was_asked || !is_about_it {
            return failure;
        }
        let said = match failure {
            CheckFailure::Fault(Fault::Tls(said)) => format!(" ({said})"),
            _ => String::new(),
        };
        Fault::Tls(match self.identity {
            None => DEMAND.to_owned(),
            Some(_) => format!("the server does not accept the client certificate{said}"),
        })
        .into()
    }
}

/// Why a server without a certificate of the client does not answer.
pub const DEMAND: &str = "the server demands a client certificate; set ClientCertificate=";

impl ResolvesClientCert for Answerer {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.was_asked.store(true, Ordering::Relaxed);
        self.identity.as_ref().map(|identity| identity.0.clone())
    }

    fn has_certs(&self) -> bool {
        self.identity.is_some()
    }
}
