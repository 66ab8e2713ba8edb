//! Answers that call a function of the page (JSONP). Pages choose another name for it in each visit,
//! and a rule finds the recorded answer, which calls the function of the recorded visit.

use url::Url;

/// A comment before the call, against attacks on old plugins.
const COMMENT: &str = "/**/";

/// Returns the body with the name that the page wants, if its head calls a function whose name is a
/// value of the recorded URL; `None` if nothing has to be changed.
pub fn renamed(body: &[u8], recorded: &str, wanted: &str) -> Option<Vec<u8>> {
    names(recorded, wanted).iter().find_map(|(old, new)| rename(body, old, new))
}

/// Recorded and wanted names of functions, of arguments that the URLs have both.
fn names(recorded: &str, wanted: &str) -> Vec<(String, String)> {
    let (Ok(recorded), Ok(wanted)) = (Url::parse(recorded), Url::parse(wanted)) else {
        return Vec::new();
    };
    let of_recorded = recorded.query_pairs();
    let pairs = of_recorded.filter_map(|(name, old)| {
        let (_, new) = wanted.query_pairs().find(|(other, _)| *other == name)?;
        Some((old.into_owned(), new.into_owned()))
    });
    pairs.filter(|(old, new)| old != new && is_function(old) && is_function(new)).collect()
}

/// Whether the text can be the name of a function: anything else would be code of the URL.
fn is_function(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    name.starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
        && name.chars().all(is_letter)
}

/// Replaces the name in `NAME(…` or `typeof NAME === 'function' && NAME(…`.
fn rename(body: &[u8], old: &str, new: &str) -> Option<Vec<u8>> {
    let rest = body.trim_ascii_start();
    let rest = rest.strip_prefix(COMMENT.as_bytes()).unwrap_or(rest);
    let rest = rest.trim_ascii_start();
    let head = &body[..body.len() - rest.len()];
    let call = |name: &str| format!("{name}(");
    let guarded = |name: &str| format!("typeof {name} === 'function' && {name}(");
    [(call(old), call(new)), (guarded(old), guarded(new))].iter().find_map(|(old, new)| {
        let rest = rest.strip_prefix(old.as_bytes())?;
        Some([head, new.as_bytes(), rest].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_at_the_head_of_the_body_is_that_of_the_request() {
        let renamed = |body: &str, recorded: &str, wanted: &str| {
            let url = |value: &str| format!("http://a.test/api?q=x&callback={value}&_=1");
            let body = renamed(body.as_bytes(), &url(recorded), &url(wanted))?;
            Some(String::from_utf8(body).unwrap())
        };
        let same = |body: &str| renamed(body, "jQuery1_2", "jQuery3_4");
        assert_eq!(
            same(r#"jQuery1_2({"jQuery1_2": 1});"#).unwrap(),
            r#"jQuery3_4({"jQuery1_2": 1});"#
        );
        assert_eq!(same(" /**/ jQuery1_2(1)").unwrap(), " /**/ jQuery3_4(1)");
        assert_eq!(
            same("/**/ typeof jQuery1_2 === 'function' && jQuery1_2(1);").unwrap(),
            "/**/ typeof jQuery3_4 === 'function' && jQuery3_4(1);"
        );
        for other in ["", "jQuery1_23(1)", "other(1)", r#"{"a": "jQuery1_2("}"#] {
            assert_eq!(same(other), None, "{other}");
        }
        assert_eq!(renamed("a(1)", "a", "alert(1);a"), None);
        assert_eq!(renamed("a(1)", "a", "a"), None);
    }
}
