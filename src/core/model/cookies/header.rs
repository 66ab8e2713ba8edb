//! `Cookie: name=value; name=value`, as the developer tools of browsers copy it, alone or with the
//! other headers of a request. RFC 6265, section 4.2.

use super::{Cookie, CookieFile, host};
use crate::model::Place;
use crate::text::trim_blanks;

const NEEDS_HOST: &str =
    "it is a Cookie: header, which does not name its host; name it with --host";

/// Reads a header; `None` if `text` has none.
pub fn read(text: &str, named: Option<&str>) -> Option<Result<CookieFile, String>> {
    let lines = (1..).zip(text.split('\n').map(trim_blanks));
    let filled = lines.filter(|(_, line)| !line.is_empty());
    let mut headers: Vec<(u64, &str)> = filled
        .clone()
        .filter_map(|(number, line)| Some((number, value(line, "cookie")?)))
        .collect();
    if headers.is_empty() {
        let mut bare = filled.clone().filter(|(_, line)| !line.starts_with('#'));
        headers.extend(bare.next().filter(|(_, line)| is_bare(line)));
        if headers.is_empty() || bare.next().is_some() {
            return None;
        }
    }
    let in_file = || {
        let mut values = filled
            .clone()
            .filter_map(|(_, line)| value(line, "host").or_else(|| value(line, ":authority")));
        values.next().map(without_port)
    };
    let Some(domain) = named.or_else(in_file) else {
        return Some(Err(NEEDS_HOST.to_owned()));
    };
    if let Err(why) = host(domain) {
        return Some(Err(why));
    }
    let mut file = CookieFile::default();
    for (number, pairs) in headers {
        let pairs = pairs.split(';').map(trim_blanks);
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            file.push(Place::Line(number), cookie(pair, domain));
        }
    }
    Some(Ok(file.without_repetition()))
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let start = line.get(..name.len())?;
    let rest = line[name.len()..].trim_start().strip_prefix(':')?;
    start.eq_ignore_ascii_case(name).then(|| trim_blanks(rest))
}

/// Returns whether a line is the value of the header alone. A line of Netscape's format has blanks
/// before its first equals sign, or none of these.
fn is_bare(line: &str) -> bool {
    let first = line.split(';').next().unwrap_or_default();
    let name = first.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && !name.contains([' ', '\t', ':', '/']))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn cookie(pair: &str, domain: &str) -> Result<Cookie, String> {
    let (name, value) = pair.split_once('=').ok_or("a part of the header is not NAME=VALUE")?;
    let name = trim_blanks(name);
    Ok(Cookie {
        host: domain.to_owned(),
        subdomains: domain.starts_with('.'),
        path: "/".to_owned(),
        // Browsers refuse these names otherwise (RFC 6265bis, section 4.1.3).
        secure: name.starts_with("__Secure-") || name.starts_with("__Host-"),
        http_only: false,
        expires: None,
        name: name.to_owned(),
        value: trim_blanks(value).to_owned(),
    })
}
