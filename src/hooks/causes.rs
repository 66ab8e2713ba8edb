//! Causes of a failure that the machine and its configuration show.

use crate::certificates;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::{network, reach};

/// Adds the causes of a failure that the machine and its configuration show.
pub fn explained(finding: Finding, invocation: &Invocation) -> Finding {
    let finding = certificates::client_certificate::with_explanation(finding, invocation);
    let finding = certificates::authorities::with_explanation(finding);
    let finding = certificates::issuer::with_explanation(finding);
    let url = invocation.web_url().ok();
    let finding = network::with_explanation(finding, url.as_ref());
    if finding.has(network::FIELD) {
        return finding;
    }
    reach::with_explanation(finding, url.as_ref())
}
