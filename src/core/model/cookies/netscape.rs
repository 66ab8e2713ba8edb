//! Netscape's format: one cookie per line, with domain, whether subdomains get it, path, secure,
//! expiry, name and value, separated by tabs. Editors and web pages make blanks of tabs.

use super::{Cookie, CookieFile, HTTP_ONLY, expiry};
use crate::model::Place;
use crate::text::trim_blanks;

const FORMAT: &str = "it is not a cookie in Netscape format (domain, TRUE or FALSE, path, TRUE or \
                      FALSE, expiry, name and value, separated by tabs)";

pub fn read(text: &str) -> CookieFile {
    let mut file = CookieFile::default();
    for (number, line) in (1..).zip(text.split('\n')) {
        // A tab at the end is a separator before an empty value.
        let line = line.trim_matches(|c: char| c != '\t' && crate::text::is_blank(c));
        let (http_only, line) = match line.strip_prefix(HTTP_ONLY) {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if trim_blanks(line).is_empty() || line.starts_with('#') {
            continue;
        }
        file.push(Place::Line(number), cookie(line, http_only));
    }
    file.without_repetition()
}

fn cookie(line: &str, http_only: bool) -> Result<Cookie, String> {
    let fields = fields(line).ok_or(FORMAT)?;
    let [domain, subdomains, path, secure, expires, name, value] = fields;
    let flag = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(FORMAT.to_owned()),
    };
    let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let end = match trim_blanks(expires) {
        "" => None,
        number if number.contains(|c| !is_number(c)) => return Err(FORMAT.to_owned()),
        number => expiry(number.parse().map_err(|_| FORMAT.to_owned())?),
    };
    Ok(Cookie {
        host: domain.to_owned(),
        subdomains: flag(subdomains)?,
        path: if path.is_empty() { "/" } else { path }.to_owned(),
        secure: flag(secure)?,
        http_only,
        expires: end,
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// Splits a line at its tabs, or at its blanks if it has too few tabs. The value is the rest.
fn fields(line: &str) -> Option<[&str; 7]> {
    if line.matches('\t').count() >= 5 {
        let mut fields = line.splitn(7, '\t');
        let mut field = || fields.next();
        let six = [field()?, field()?, field()?, field()?, field()?, field()?];
        let [a, b, c, d, e, f] = six.map(trim_blanks);
        return Some([a, b, c, d, e, f, field().unwrap_or_default()]);
    }
    let mut rest = trim_blanks(line);
    let mut next = || {
        let (field, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = after.trim_start();
        (!field.is_empty()).then_some(field)
    };
    let six = [next()?, next()?, next()?, next()?, next()?, next()?];
    let [a, b, c, d, e, f] = six;
    Some([a, b, c, d, e, f, rest])
}
