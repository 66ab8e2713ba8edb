//! Certificates of authorities as certificates of servers: `openssl req -x509` and other tools set
//! `CA:TRUE` in all that they make. Browsers and OpenSSL accept these from a server that the machine
//! trusts; webpki does not.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints};

/// Most authorities between a server and the machine's own list.
const DEPTH: usize = 4;
/// Purpose "TLS server", and any purpose (RFC 5280, section 4.2.1.12).
const SERVER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const ANY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");

/// Returns when a certificate expires, in seconds since 1970.
pub fn end_of_validity(certificate: &CertificateDer<'_>) -> Option<i64> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let end = certificate.tbs_certificate.validity.not_after;
    i64::try_from(end.to_unix_duration().as_secs()).ok()
}

/// Returns whether a certificate is valid at `now` (seconds since 1970), for a server, and is one of
/// `trusted` or issued by one of them, directly or through `sent`. Does not compare names.
pub fn is_trusted(
    certificate: &CertificateDer<'_>,
    sent: &[CertificateDer<'_>],
    trusted: &[CertificateDer<'_>],
    now: u64,
    algorithms: &[&dyn SignatureVerificationAlgorithm],
) -> bool {
    let Some(own) =
        Known::read(certificate).filter(|own| own.is_valid(now) && own.is_of_a_server())
    else {
        return false;
    };
    if trusted.iter().any(|other| other == certificate) {
        return true;
    }
    let others = |list: &[CertificateDer<'_>]| -> Vec<Known> {
        list.iter().filter_map(Known::read).collect()
    };
    let sent = others(&sent[..sent.len().min(2 * DEPTH)]);
    let path = Path { sent: &sent, trusted: &others(trusted), now, algorithms };
    path.leads_from(&own, DEPTH)
}

/// Returns whether the certificate of the issuer is not among those that the server sent, as if its chain of
/// certificates were not installed. Browsers fetch it from the address that the certificate names.
pub fn is_missing(certificate: &CertificateDer<'_>, sent: &[CertificateDer<'_>]) -> bool {
    let Some(own) = Known::read(certificate) else {
        return false;
    };
    let tbs = &own.0.tbs_certificate;
    let is_issuer = |other: Known| other.0.tbs_certificate.subject == tbs.issuer;
    tbs.issuer != tbs.subject && !sent.iter().filter_map(Known::read).any(is_issuer)
}

struct Path<'a> {
    sent: &'a [Known],
    trusted: &'a [Known],
    now: u64,
    algorithms: &'a [&'a dyn SignatureVerificationAlgorithm],
}

impl Path<'_> {
    fn leads_from(&self, certificate: &Known, left: usize) -> bool {
        let below = DEPTH - left;
        let signs = |issuer: &&Known| {
            issuer.may_issue(self.now, below) && certificate.is_signed_by(issuer, self.algorithms)
        };
        self.trusted.iter().any(|issuer| signs(&issuer))
            || (left > 0
                && self.sent.iter().filter(signs).any(|issuer| self.leads_from(issuer, left - 1)))
    }
}

struct Known(Certificate);

impl Known {
    fn read(certificate: &CertificateDer<'_>) -> Option<Known> {
        Certificate::from_der(certificate).ok().map(Known)
    }

    fn is_valid(&self, now: u64) -> bool {
        let validity = &self.0.tbs_certificate.validity;
        let span = validity.not_before.to_unix_duration().as_secs()
            ..=validity.not_after.to_unix_duration().as_secs();
        span.contains(&now)
    }

    fn is_of_a_server(&self) -> bool {
        match self.0.tbs_certificate.get::<ExtendedKeyUsage>() {
            Ok(None) => true,
            Ok(Some((_, purposes))) => purposes.0.iter().any(|own| *own == SERVER || *own == ANY),
            Err(_) => false,
        }
    }

    /// Returns whether it may issue certificates with `below` authorities between it and the server.
    /// Constraints on names are not evaluated, so an authority that has them issues none.
    fn may_issue(&self, now: u64, below: usize) -> bool {
        let tbs = &self.0.tbs_certificate;
        let is_authority = matches!(tbs.get::<BasicConstraints>(), Ok(Some((_, own)))
            if own.ca && own.path_len_constraint.is_none_or(|most| below <= usize::from(most)));
        let signs = match tbs.get::<KeyUsage>() {
            Ok(None) => true,
            Ok(Some((_, usage))) => usage.key_cert_sign(),
            Err(_) => false,
        };
        let is_free = matches!(tbs.get::<NameConstraints>(), Ok(None));
        is_authority && signs && is_free && self.is_valid(now) && self.is_of_a_server()
    }

    fn is_signed_by(&self, issuer: &Known, all: &[&dyn SignatureVerificationAlgorithm]) -> bool {
        let (own, issuer) = (&self.0, &issuer.0.tbs_certificate);
        if own.tbs_certificate.issuer != issuer.subject {
            return false;
        }
        let key = &issuer.subject_public_key_info;
        let (Ok(message), Some(signature), Some(bits)) = (
            own.tbs_certificate.to_der(),
            own.signature.as_bytes(),
            key.subject_public_key.as_bytes(),
        ) else {
            return false;
        };
        let kinds = (contents(&own.signature_algorithm), contents(&key.algorithm));
        let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
            kinds.0.as_deref() == Some(algorithm.signature_alg_id().as_ref())
                && kinds.1.as_deref() == Some(algorithm.public_key_alg_id().as_ref())
        };
        all.iter()
            .filter(fits)
            .any(|algorithm| algorithm.verify_signature(bits, &message, signature).is_ok())
    }
}

/// Returns a short sequence without its tag and length.
fn contents(sequence: &impl Encode) -> Option<Vec<u8>> {
    match sequence.to_der().ok()?.as_slice() {
        [0x30, length, contents @ ..] if usize::from(*length) == contents.len() => {
            Some(contents.to_vec())
        }
        _ => None,
    }
}
