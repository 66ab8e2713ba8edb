//! Cookies as JSON: an array of objects (EditThisCookie, Cookie-Editor, Puppeteer, Selenium, Cookie
//! Quick Manager), or an object that has one (`{"cookies": […]}`, Playwright's storage state).

use super::{Cookie, CookieFile, expiry};
use crate::model::Place;
use serde_json::{Map, Value};

const HOST: [&str; 3] = ["domain", "host", "Host raw"];
const NAME: [&str; 2] = ["name", "Name raw"];
const VALUE: [&str; 2] = ["value", "Content raw"];
const PATH: [&str; 2] = ["path", "Path raw"];
const SECURE: [&str; 3] = ["secure", "isSecure", "Send for raw"];
const HTTP_ONLY: [&str; 3] = ["httpOnly", "isHttpOnly", "HTTP only raw"];
const EXPIRES: [&str; 4] = ["expirationDate", "expires", "expiry", "Expires raw"];
const HOST_ONLY: [&str; 2] = ["hostOnly", "This domain only raw"];

pub fn read(text: &str) -> Result<CookieFile, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("it is broken JSON: {error}"))?;
    let cookies = match document {
        Value::Array(cookies) => cookies,
        Value::Object(mut object) => match object.remove("cookies") {
            Some(Value::Array(cookies)) => cookies,
            _ if has(&object, &NAME) && has(&object, &VALUE) => vec![Value::Object(object)],
            _ if object.contains_key("log") => {
                return Err("it is a HAR file; export the cookies".to_owned());
            }
            _ => return Err("it is JSON without an array of cookies".to_owned()),
        },
        _ => return Err("it is JSON without an array of cookies".to_owned()),
    };
    let mut file = CookieFile::default();
    for (number, value) in (1..).zip(&cookies) {
        let found = match value {
            Value::Object(object) => cookie(object),
            _ => Err("it is not a JSON object".to_owned()),
        };
        file.push(Place::Element(number), found);
    }
    Ok(file.without_repetition())
}

fn has(object: &Map<String, Value>, names: &[&str]) -> bool {
    get(object, names).is_some()
}

fn get<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

fn text<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    get(object, names)?.as_str()
}

fn cookie(object: &Map<String, Value>) -> Result<Cookie, String> {
    let missing = |name: &str| format!("it has no \"{name}\"");
    let flag = |names: &[&str]| {
        get(object, names).map(|value| match value {
            Value::Bool(flag) => *flag,
            Value::String(text) => text.eq_ignore_ascii_case("true"),
            Value::Number(number) => number.as_i64() == Some(1),
            _ => false,
        })
    };
    let of_url = || Some(text(object, &["url"])?.split_once("://")?.1);
    let domain = text(object, &HOST).or_else(of_url);
    let domain = domain.ok_or_else(|| missing("domain"))?;
    // Some write the address of the site.
    let domain = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    let domain = domain.split('/').next().unwrap_or_default();
    let value = match get(object, &VALUE) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        _ => return Err(missing("value")),
    };
    let path = text(object, &PATH).filter(|path| !path.is_empty());
    Ok(Cookie {
        host: domain.to_owned(),
        subdomains: match flag(&HOST_ONLY) {
            Some(host_only) => !host_only,
            None => domain.starts_with('.'),
        },
        path: path.unwrap_or("/").to_owned(),
        secure: flag(&SECURE).unwrap_or(false),
        http_only: flag(&HTTP_ONLY).unwrap_or(false),
        expires: match flag(&["session"]) {
            Some(true) => None,
            _ => end(get(object, &EXPIRES))?,
        },
        name: text(object, &NAME).ok_or_else(|| missing("name"))?.to_owned(),
        value,
    })
}

/// Returns when a cookie ends: a number, a number as text, or a date.
fn end(value: Option<&Value>) -> Result<Option<i64>, String> {
    let refused = || "its expiry is neither a number nor a date".to_owned();
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(expiry(number.as_f64().ok_or_else(refused)?)),
        Some(Value::String(text)) => {
            let text = text.trim();
            if text.is_empty() || text.eq_ignore_ascii_case("session") {
                return Ok(None);
            }
            if let Ok(number) = text.parse::<f64>() {
                return Ok(expiry(number));
            }
            let date = text.parse::<jiff::Timestamp>();
            let date = date.or_else(|_| {
                let date = jiff::fmt::rfc2822::parse(text);
                date.map(|date| date.timestamp())
            });
            // A date in the past is not a cookie of the session.
            let seconds = date.map_err(|_| refused())?.as_second();
            Ok(Some(seconds.max(1)))
        }
        Some(_) => Err(refused()),
    }
}
