//! The client certificate in the browser: in the NSS database of its home directory, chosen without a
//! dialog for each server on one of its hosts that requests one. For another server, chromium would ask
//! its user: that request waits until the page is stopped, and gets no certificate.

use crate::certificates::client_certificate::{CertificateHost, ClientCertificate};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Largest file with preferences in bytes.
const PREFERENCES_MAX_BYTES: u64 = 16 << 20;

/// Adds the certificate to the browser with this home directory and profile.
pub fn add(certificate: &ClientCertificate, home: &Path, profile: &Path) -> io::Result<()> {
    let database = crate::certificates::authorities::database(home)?;
    let packed = home.join("client.p12");
    let mut command = Command::new("openssl");
    command.args(["pkcs12", "-export", "-passout", "pass:", "-name", "client"]);
    command.arg("-in").arg(&certificate.certificate);
    command.arg("-inkey").arg(&certificate.key);
    run(command.arg("-out").arg(&packed), "openssl")?;
    let mut command = Command::new("pk12util");
    command.args(["-d", &database, "-W", "", "-i"]);
    let imported = run(command.arg(&packed), "pk12util");
    fs::remove_file(&packed)?;
    imported?;
    choose(&profile.join("Default"), &certificate.hosts)
}

/// Writes the preference behind the policy AutoSelectCertificateForUrls: without a policy, which
/// would be one of the whole machine, Chromium reads it from the profile.
fn choose(profile: &Path, hosts: &[CertificateHost]) -> io::Result<()> {
    let file = profile.join("Preferences");
    let known = crate::process::files::read_start(&file, PREFERENCES_MAX_BYTES);
    let known = known.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let mut preferences = known.filter(Value::is_object).unwrap_or_else(|| json!({}));
    let of = |host| json!({"pattern": pattern(host), "filter": {}}).to_string();
    let rules: Vec<String> = hosts.iter().map(of).collect();
    if !preferences["profile"].is_object() {
        preferences["profile"] = json!({});
    }
    preferences["profile"]["managed_auto_select_certificate_for_urls"] = json!(rules);
    fs::create_dir_all(profile)?;
    fs::write(file, preferences.to_string())
}

/// The hosts as a pattern of chromium's content settings.
fn pattern(host: &CertificateHost) -> String {
    match host {
        CertificateHost::All => "*".to_owned(),
        CertificateHost::Host(host) => format!("https://{host}"),
        CertificateHost::Domain(domain) => format!("https://[*.]{domain}"),
    }
}

fn run(command: &mut Command, program: &str) -> io::Result<()> {
    let done = command.output().map_err(|error| io::Error::other(format!("{program}: {error}")))?;
    if done.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&done.stderr);
    let line = reason.lines().next().unwrap_or("no reason given");
    Err(io::Error::other(format!("{program}: {line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_of_a_profile_stay() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("Preferences");
        for before in ["", "{", r#"{"a": 1, "profile": {"name": "x"}}"#] {
            fs::write(&file, before).unwrap();
            let hosts = [
                CertificateHost::Host("a.test".to_owned()),
                CertificateHost::Domain("b.test".to_owned()),
            ];
            choose(top.path(), &hosts).unwrap();
            let after: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            let rules = &after["profile"]["managed_auto_select_certificate_for_urls"];
            assert_eq!(rules[0], r#"{"pattern":"https://a.test","filter":{}}"#);
            assert_eq!(rules[1], r#"{"pattern":"https://[*.]b.test","filter":{}}"#);
            let is_kept = after["a"] == 1 && after["profile"]["name"] == "x";
            assert_eq!(is_kept, before.len() > 1);
        }
    }
}
