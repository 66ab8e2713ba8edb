//! Servers' certificates, good and bad.

use super::ReadWrite;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};
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
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        Made { authority, issuer: Issuer::new(params, key) }
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
        self.self_signed_pem().0
    }

    /// Self-signed, and the certificate as a file of authorities holds it.
    pub fn self_signed_pem(&self) -> (Arc<ServerConfig>, String) {
        self_signed(of("127.0.0.1"))
    }

    /// Self-signed with CA:TRUE.
    pub fn own_authority(&self) -> (Arc<ServerConfig>, String) {
        self_signed(authority())
    }

    /// Issued, with CA:TRUE.
    pub fn issued_authority(&self) -> Arc<ServerConfig> {
        self.signed(authority())
    }

    pub fn expired_authority(&self) -> Arc<ServerConfig> {
        let mut params = authority();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        self.signed(params)
    }

    /// With CA:TRUE, issued by an authority below the trusted one, which the server sends.
    pub fn issued_below(&self) -> Arc<ServerConfig> {
        let mut params = authority();
        params.distinguished_name.push(DnType::CommonName, "an authority below");
        let (middle, own) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let sent = params.signed_by(&middle, &self.issuer).unwrap();
        let issuer = Issuer::new(params, middle);
        let certificate = authority().signed_by(&own, &issuer).unwrap();
        config(vec![certificate.der().clone(), sent.der().clone()], &own)
    }

    /// Issued by an authority below the trusted one, which the server does not send.
    pub fn without_issuer(&self) -> Arc<ServerConfig> {
        let mut params = authority();
        params.distinguished_name.push(DnType::CommonName, "an authority below");
        let issuer = Issuer::new(params, KeyPair::generate().unwrap());
        let own = KeyPair::generate().unwrap();
        let certificate = of("127.0.0.1").signed_by(&own, &issuer).unwrap();
        config(vec![certificate.der().clone()], &own)
    }

    /// Valid for some days from now.
    pub fn of_days(&self, days: i64) -> Arc<ServerConfig> {
        let mut params = of("127.0.0.1");
        params.not_after = std::time::SystemTime::now().into();
        params.not_after += std::time::Duration::from_secs(3600 + 86_400 * days.unsigned_abs());
        self.signed(params)
    }

    /// Speaks HTTP/2 alone.
    pub fn modern(&self) -> Arc<ServerConfig> {
        let mut config = (*self.good()).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    /// Demands a certificate of this authority, with these versions of TLS.
    pub fn demanding(&self, versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = of("127.0.0.1").signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.unwrap())
    }

    /// Certificate and key of a client in PEM.
    pub fn client(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = of("client").signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn signed(&self, params: CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        config(vec![certificate.der().clone()], &key)
    }
}

fn authority() -> CertificateParams {
    let mut params = of("127.0.0.1");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn self_signed(params: CertificateParams) -> (Arc<ServerConfig>, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let config = config(vec![certificate.der().clone()], &key);
    (config, certificate.pem())
}

fn of(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

fn config(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.unwrap().with_no_client_auth().with_single_cert(chain, key);
    Arc::new(config.unwrap())
}

/// TLS over a connection.
pub fn wrap(stream: TcpStream, config: &Arc<ServerConfig>) -> Option<Box<dyn ReadWrite>> {
    let connection = ServerConnection::new(config.clone()).ok()?;
    Some(Box::new(StreamOwned::new(connection, stream)))
}
