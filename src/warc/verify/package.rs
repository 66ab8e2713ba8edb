//! Compares the members of a WACZ with the list of their digests.

use super::Report;
use crate::digest;
use crate::zip::Member;
use flate2::Crc;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;

const PACKAGE: &str = "datapackage.json";
const PACKAGE_DIGEST: &str = "datapackage-digest.json";
/// Largest of these two files in bytes.
const PACKAGE_MAX_BYTES: u64 = 64 << 20;

pub(super) fn check(members: &[Member], report: &mut Report) {
    let mut digests: BTreeMap<&str, (String, u64)> = BTreeMap::new();
    for member in members {
        match sums(member) {
            Ok((digest, bytes, crc)) => {
                if crc != member.crc {
                    report.add(&member.name, "CRC-32 differs from that in the ZIP directory");
                }
                if bytes != member.size {
                    let reason =
                        format!("has {bytes} bytes, the ZIP directory says {}", member.size);
                    report.add(&member.name, reason);
                }
                digests.insert(&member.name, (digest, bytes));
            }
            Err(error) => report.add(&member.name, error.to_string()),
        }
    }
    let find = |name: &str| members.iter().find(|member| member.name == name);
    for name in ["pages/pages.jsonl", PACKAGE] {
        if find(name).is_none() {
            report.add(name, "missing");
        }
    }
    let Some(package) = find(PACKAGE) else { return };
    let Some(package) = object(package, report) else {
        return;
    };
    if package["profile"] != "data-package" || !package["wacz_version"].is_string() {
        report.add(PACKAGE, "names no version of WACZ");
    }
    if let Some(list) = find(PACKAGE_DIGEST).and_then(|member| object(member, report)) {
        let listed = list["hash"].as_str().unwrap_or_default();
        compare(PACKAGE, listed, &digests, report);
    }
    let none = Vec::new();
    let resources = package["resources"].as_array().unwrap_or(&none);
    let mut unlisted = digests.clone();
    for resource in resources {
        let path = resource["path"].as_str().unwrap_or_default();
        unlisted.remove(path);
        let Some((_, bytes)) = digests.get(path) else {
            report.add(PACKAGE, format!("lists '{path}', which is missing"));
            continue;
        };
        if resource["bytes"].as_u64().is_some_and(|listed| listed != *bytes) {
            let listed = &resource["bytes"];
            report.add(path, format!("has {bytes} bytes, {PACKAGE} says {listed}"));
        }
        let listed = resource["hash"].as_str().unwrap_or_default();
        compare(path, listed, &digests, report);
    }
    for name in unlisted.keys() {
        if ![PACKAGE, PACKAGE_DIGEST].contains(name) && !name.ends_with('/') {
            report.add(*name, format!("{PACKAGE} does not list it"));
        }
    }
}

fn compare(name: &str, listed: &str, digests: &BTreeMap<&str, (String, u64)>, report: &mut Report) {
    let Some((own, _)) = digests.get(name) else {
        return;
    };
    match digest::agree(own, listed) {
        Some(true) => {}
        Some(false) => report.add(name, format!("digest is {own}, and '{listed}' is listed")),
        None => report.uncompared += 1,
    }
}

fn object(member: &Member, report: &mut Report) -> Option<Value> {
    let bytes = member.bytes(PACKAGE_MAX_BYTES);
    let value = bytes.map_err(|error| error.to_string()).and_then(|bytes| {
        serde_json::from_slice(&bytes).map_err(|error| format!("no JSON: {error}"))
    });
    match value {
        Ok(value) => Some(value),
        Err(reason) => {
            report.add(&member.name, reason);
            None
        }
    }
}

/// SHA-256, bytes and CRC-32 of the content.
fn sums(member: &Member) -> std::io::Result<(String, u64, u32)> {
    let mut content = member.content();
    let (mut sha256, mut crc, mut bytes) = (Sha256::new(), Crc::new(), 0);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = content.read(&mut chunk)?;
        if count == 0 {
            return Ok((digest::text(sha256), bytes, crc.sum()));
        }
        sha256.update(&chunk[..count]);
        crc.update(&chunk[..count]);
        bytes += count as u64;
    }
}
