//! Pages for signing in to which a server redirects, or a script goes, in place of a page. A page that was
//! asked for as one is the page, and so is one with a form for signing in that did not lead elsewhere. Walls
//! for payment are known by their status (402): the mark `isAccessibleForFree` of schema.org is also in the
//! article that a subscriber gets.

use crate::chromium::cdp::Session;
use crate::chromium::cdp::isolated_world;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// Names of pages for signing in: a segment of the path, without what follows a dot.
const NAMES: [&str; 9] = [
    "login",
    "log-in",
    "log_in",
    "wp-login",
    "signin",
    "sign-in",
    "sign_in",
    "sso",
    "servicelogin",
];
/// Parameters in which such a page gets the address to which it returns.
const RETURN_PARAMETERS: [&str; 10] = [
    "service",
    "next",
    "return",
    "return_to",
    "returnto",
    "returnurl",
    "redirect",
    "redirect_to",
    "redirect_uri",
    "continue",
];
/// Time limit of the answer. A page that is too busy to answer counts as no page for signing in.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the address of the document, if visitors see a field for a password.
const FIND: &str = r#"() => {
  const fields = [...document.querySelectorAll("input[type=password]")];
  return fields.some(field => field.getClientRects().length > 0) ? location.href : null;
}"#;

/// Returns why the document of a tab is not the page, if it is one for signing in. `page`: the target id
/// of the tab.
pub async fn found(session: &Session, page: &str, asked: &Url) -> Option<String> {
    let answer = isolated_world::evaluate(session, page, FIND, &[] as &[Value]);
    let answer = timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()?;
    let mut shown = Url::parse(answer.as_str()?).ok()?;
    leads_to_login(asked, &shown).then(|| {
        shown.set_query(None);
        shown.set_fragment(None);
        format!("the server shows a page for signing in instead of the page: {shown}")
    })
}

/// Whether an address that was asked for led to that of a page for signing in.
fn leads_to_login(asked: &Url, shown: &Url) -> bool {
    let is_elsewhere = asked.host() != shown.host() || asked.path() != shown.path();
    is_elsewhere && !is_named(asked) && (is_named(shown) || returns_to(shown, asked))
}

fn is_named(url: &Url) -> bool {
    let mut segments = url.path_segments().into_iter().flatten();
    segments.any(|segment| {
        let name = segment.split_once('.').map_or(segment, |(name, _)| name);
        NAMES.contains(&name.to_ascii_lowercase().as_str())
    })
}

/// Whether a parameter has the address that was asked for: as a whole, or its path and what follows.
fn returns_to(shown: &Url, asked: &Url) -> bool {
    let mut path = asked.path().to_owned();
    if let Some(query) = asked.query() {
        path = format!("{path}?{query}");
    }
    // Of the start page, the address as a whole.
    let is_path = |value: &str| path != "/" && value == path;
    let is_address = |value: &str| {
        Url::parse(value).is_ok_and(|mut value| {
            value.set_fragment(None);
            let has_host = value.host() == asked.host();
            has_host && value.path() == asked.path() && value.query() == asked.query()
        })
    };
    shown.query_pairs().any(|(name, value)| {
        RETURN_PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
            && (is_path(&value) || is_address(&value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_for_signing_in_are_known_by_their_address() {
        let leads = |asked: &str, shown: &str| {
            leads_to_login(&Url::parse(asked).unwrap(), &Url::parse(shown).unwrap())
        };
        let asked = "https://a.test/wiki/page?id=3#part";
        for shown in [
            "https://a.test/login",
            "https://a.test/users/sign_in",
            "https://a.test/wp-login.php?reauth=1",
            "https://sso.a.test/auth?service=https%3A%2F%2Fa.test%2Fwiki%2Fpage%3Fid%3D3",
            "https://a.test/account?next=%2Fwiki%2Fpage%3Fid%3D3",
            "https://id.test/sso/start",
            "https://a.test/session/new?return_to=https%3A%2F%2Fa.test%2Fwiki%2Fpage%3Fid%3D3",
        ] {
            assert!(leads(asked, shown), "{shown}");
        }
        for shown in [
            asked,
            "https://a.test/wiki/page",
            "https://www.a.test/wiki/page?id=3",
            "https://a.test/wiki/moved",
            "https://a.test/blog/how-login-works",
            "https://a.test/start?next=%2F",
            "https://a.test/start?next=%2Fother",
            "https://a.test/start?page=%2Fwiki%2Fpage%3Fid%3D3",
        ] {
            assert!(!leads(asked, shown), "{shown}");
        }
        assert!(!leads("https://a.test/login", "https://a.test/de/login"), "asked for");
        assert!(!leads("https://a.test/", "https://a.test/en?next=%2F"));
        assert!(leads("https://a.test/", "https://id.test/x?continue=https%3A%2F%2Fa.test%2F"));
    }

    proptest::proptest! {
        #[test]
        fn address_that_stays_is_the_page(path in "(/[a-z]{0,8}){1,4}", query in "[a-z=&/%]{0,20}") {
            let asked = Url::parse(&format!("https://a.test{path}")).unwrap();
            let shown = Url::parse(&format!("https://a.test{path}?{query}")).unwrap();
            proptest::prop_assert!(!leads_to_login(&asked, &shown));
        }
    }
}
