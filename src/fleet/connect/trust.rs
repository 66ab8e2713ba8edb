//! TLS: the authorities of the machine or of a file, and full verification.

use super::Problem;
use super::secret::Secrets;
use super::target::Target;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Returns the connector for a target. The authorities are those of the URL, of the credential, or
/// of the machine, in this order.
///
/// # Errors
/// If there is no usable authority.
pub(super) fn connector(target: &Target, secrets: &Secrets) -> Result<MakeRustlsConnect, Problem> {
    let roots = match (target.authorities(), secrets.authorities()) {
        (Some(file), _) => of_file(file)?,
        (None, Some(authorities)) => of_pem(&authorities.name, &authorities.pem)?,
        (None, None) if target.uses_tls() => of_machine()?,
        (None, None) => RootCertStore::empty(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Problem::Authorities(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn of_file(file: &Path) -> Result<RootCertStore, Problem> {
    let name = file.display().to_string();
    let fail = |error| Problem::Authorities(format!("{name}: {error}"));
    let pem = std::fs::read(file).map_err(fail)?;
    of_pem(&name, &pem)
}

/// Returns the certificates of a file whose name is for messages.
fn of_pem(name: &str, pem: &[u8]) -> Result<RootCertStore, Problem> {
    let fail = |reason: String| Problem::Authorities(format!("{name}: {reason}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| fail(error.to_string()))?;
        roots.add(certificate).map_err(|error| fail(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fail("the file contains no certificate in PEM format".to_owned()));
    }
    Ok(roots)
}

fn of_machine() -> Result<RootCertStore, Problem> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Problem::Authorities(
            "this machine trusts no authority: install ca-certificates, or use 'archivist fleet join' with --ca FILE"
                .to_owned(),
        ));
    }
    Ok(roots)
}
