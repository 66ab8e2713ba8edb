//! Who a check is to the server: headers and certificate of the watch.

use super::http::Identity;
use super::request::Request;
use archivist_core::model::{ClientIdentity, is_harmless_header};
use std::io::Read;
use std::path::PathBuf;
use url::Url;

/// Longest file of a certificate or key, in bytes.
const SIZE_MAX: u64 = 1 << 20;

/// Returns the headers of the watch for a request to `url`: other sites than that of `start` get
/// none that may be a secret.
pub fn headers(all: &[(String, String)], start: &Url, url: &Url) -> Vec<(String, String)> {
    let is_own = url.origin() == start.origin();
    let sent = all.iter();
    sent.filter(|(name, _)| is_own || is_harmless_header(name)).cloned().collect()
}

/// Returns the certificate of the client with the host that gets it, if the watch has one.
///
/// # Errors
/// If its files cannot be read or do not fit.
pub fn identity(request: &Request) -> Result<Option<(String, Identity)>, String> {
    let Some(source) = &request.settings.probe.identity else {
        return Ok(None);
    };
    let [certificate, key] = ClientIdentity::CREDENTIALS;
    let certificate = read(certificate, &source.certificate, "ClientCertificate=")?;
    let key = read(key, &source.key, "ClientKey=")?;
    let host = request.url.host_str().unwrap_or_default().to_owned();
    Ok(Some((host, Identity::parse(&certificate, &key)?)))
}

/// Reads a credential of the unit (systemd.exec(5)); without a unit, the file itself.
fn read(name: &str, source: &str, setting: &str) -> Result<Vec<u8>, String> {
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let path = directory.map_or_else(|| PathBuf::from(source), |directory| directory.join(name));
    let mut content = Vec::new();
    let read =
        std::fs::File::open(&path).and_then(|file| file.take(SIZE_MAX).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        Err(error) => Err(format!("failed to read {setting}'{source}': {error}")),
    }
}
