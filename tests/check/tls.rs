//! Servers' certificates, good and bad.

use super::ReadWrite;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpStream;
use std::sync::Arc;

/// An authority of the test's own.
pub struct Made {
    /// As a file of authorities holds it.
    pub authority: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Made {
    pub fn new() -> Made {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        Made {
            authority,
            issuer: Issuer::new(params, key),
        }
    }

    pub fn good(&self) -> Arc<ServerConfig> {
        self.signed(of("127.0.0.1"))
    }

    pub fn of_another(&self) -> Arc<ServerConfig> {
        self.signed(of("127.0.0.2"))
    }

    pub fn expired(&self) -> Arc<ServerConfig> {
        let mut params = of("127.0.0.1");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        self.signed(params)
    }

    pub fn self_signed(&self) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate = of("127.0.0.1").self_signed(&key).unwrap();
        config(certificate.der().clone(), &key)
    }

    fn signed(&self, params: CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        config(certificate.der().clone(), &key)
    }
}

fn of(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

fn config(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: &KeyPair,
) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

/// TLS over a connection.
pub fn wrap(stream: TcpStream, config: &Arc<ServerConfig>) -> Option<Box<dyn ReadWrite>> {
    let connection = ServerConnection::new(config.clone()).ok()?;
    Some(Box::new(StreamOwned::new(connection, stream)))
}
