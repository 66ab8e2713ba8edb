//! The keys of `[Watch]` about the request of status checks, and about good answers.

use crate::declare::reader::Reader;
use archivist_core::model::{
    ClientIdentity, Probe, ProbeBody, parse_body, parse_credential, parse_expect, parse_header,
    parse_method,
};

/// Most bytes of a text that is sent or looked for.
const TEXT_MAX: usize = 64 << 10;

/// Reads how status checks ask, and what they expect.
pub fn read(reader: &mut Reader<'_>) -> Probe {
    let mut probe = Probe {
        expect: reader.value("Expect", parse_expect).unwrap_or_default(),
        method: reader.value("Method", parse_method),
        ..Probe::default()
    };
    let accept = reader.value("Accept", |value| parse_header(&format!("Accept: {value}")));
    probe.headers.extend(accept);
    for key in ["Header", "SecretHeader"] {
        for entry in reader.all(key) {
            match parse_header(&entry.value) {
                Ok((name, value)) => {
                    if key == "SecretHeader" {
                        probe.secret.push(name.to_ascii_lowercase());
                    }
                    probe.headers.push((name, value));
                }
                Err(error) => reader.refuse(entry, &error),
            }
        }
    }
    probe.identity = identity(reader);
    probe.data = reader.value("Data", bounded);
    probe.keywords = texts(reader, "Keyword");
    probe.not_keywords = texts(reader, "NotKeyword");
    if let Some(body) = reader.value("Body", parse_body) {
        probe.body = body;
    }
    if let Some(days) = reader.number("CertificateWarnDays", 0..=365) {
        probe.certificate_warn_days = days;
    }
    let reads = probe.has_keywords();
    let no_body = match (probe.method(), probe.body) {
        ("HEAD", _) => Some("Method=HEAD"),
        (_, ProbeBody::No) => Some("Body=no"),
        _ => None,
    };
    if let Some(setting) = no_body.filter(|_| reads) {
        reader.refuse_all(&format!(
            "Keyword= and NotKeyword= require a body, which {setting} leaves out"
        ));
    }
    probe
}

/// Returns where certificate and key are; the key may be in the file of the certificate.
fn identity(reader: &mut Reader<'_>) -> Option<ClientIdentity> {
    let certificate = reader.value("ClientCertificate", parse_credential);
    let key = reader.value("ClientKey", parse_credential);
    if let (None, Some(entry)) = (&certificate, reader.last("ClientKey")) {
        reader.refuse(entry, "ClientKey= requires ClientCertificate=");
    }
    let certificate = certificate?;
    let key = key.unwrap_or_else(|| certificate.clone());
    Some(ClientIdentity { certificate, key })
}

/// Returns the texts of all assignments since the last empty one.
fn texts(reader: &mut Reader<'_>, key: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in reader.all(key) {
        match bounded(&entry.value) {
            Ok(text) => texts.push(text),
            Err(error) => reader.refuse(entry, &error),
        }
    }
    texts
}

fn bounded(text: &str) -> Result<String, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("the text is longer than {} KiB", TEXT_MAX >> 10));
    }
    Ok(text.to_owned())
}
