//! Redaction of URLs and settings. The database and hooks have both in full; everything that users,
//! the journal, HTML pages or other local users read passes through here.

pub const HIDDEN: &str = "(hidden)";

/// Characters that end the authority of a URL, also within a longer text. The URL standard
/// percent-encodes all of them in user names and passwords.
const ENDS: [char; 8] = ['/', '?', '#', '\\', '"', '<', '>', '`'];

/// Words in the name of a setting whose value is a secret.
const SECRET_WORDS: [&str; 12] = [
    "APIKEY",
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "COOKIES",
    "CREDENTIALS",
    "KEY",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "TOKEN",
];

/// Returns `text` without the user name and password of any URL in it: `http://u:p@host/` becomes
/// `http://host/`.
pub fn without_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || c.is_control() || ENDS.contains(&c);
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        let skipped = authority.rfind('@').map_or(0, |at| at + 1);
        rest = &after[skipped..];
    }
    out + rest
}

/// Returns `url` for all users of the machine: without user name, password, query and fragment.
pub fn public_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    without_userinfo(&url[..end])
}

/// Returns the value of the setting `name` for display: [`HIDDEN`] for keys, tokens, passwords and
/// the like, recognized by the words of the name; otherwise without passwords in URLs.
pub fn shown_setting(name: &str, value: &str) -> String {
    if has_secret_name(name) && !value.is_empty() {
        return HIDDEN.to_owned();
    }
    without_userinfo(value)
}

/// Whether a word of the name of a setting says that its value is a secret.
pub fn has_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let mut words = upper.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| SECRET_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PageUrl;
    use proptest::prelude::*;

    #[test]
    fn user_name_and_password_are_removed() {
        for (text, wanted) in [
            ("http://bob:hunter2@a.test/?t=1#x", "http://a.test/?t=1#x"),
            ("http://bob@a.test:8080", "http://a.test:8080"),
            ("https://a%40b:p%2Fw@a.test/@x", "https://a.test/@x"),
            ("http://a.test/user@example.org", "http://a.test/user@example.org"),
            ("http://a.test/?mail=x@example.org", "http://a.test/?mail=x@example.org"),
            ("http://u:p@[::1]:80/", "http://[::1]:80/"),
            ("http://a@b@c.test/", "http://c.test/"),
            ("--url=http://u:p@a.test/", "--url=http://a.test/"),
            ("http://u:p@a/\nhttp://u:p@b/", "http://a/\nhttp://b/"),
            ("[\"--proxy=socks5://u:p@h:1\"]", "[\"--proxy=socks5://h:1\"]"),
            ("http://w.test/http://u:p@a/", "http://w.test/http://a/"),
            ("archivist:install/wget", "archivist:install/wget"),
            ("://", "://"),
            ("://@", "://"),
            ("", ""),
        ] {
            assert_eq!(without_userinfo(text), wanted, "{text}");
        }
    }

    #[test]
    fn public_url_has_neither_query_nor_fragment() {
        for (url, wanted) in [
            ("http://u:p@a.test/x?share_token=1#y", "http://a.test/x"),
            ("http://a.test/#token", "http://a.test/"),
            ("archivist:install/wget", "archivist:install/wget"),
        ] {
            assert_eq!(public_url(url), wanted);
        }
    }

    #[test]
    fn secrets_are_known_by_the_words_of_their_name() {
        for name in ["X_API_KEY", "TWOCAPTCHA_KEY", "gh-token", "WGET_PASSWORD", "COOKIES_FILE"] {
            assert_eq!(shown_setting(name, "v"), HIDDEN, "{name}");
        }
        for name in ["WGET_TIMEOUT", "KEYBOARD", "MONKEY_ARGS", "AUTHOR"] {
            assert_eq!(shown_setting(name, "v"), "v", "{name}");
        }
        assert_eq!(shown_setting("A_TOKEN", ""), "");
        assert_eq!(shown_setting("PROXY", "http://u:p@h:1/"), "http://h:1/");
    }

    proptest! {
        /// The page stays the same, without user name and password.
        #[test]
        fn without_userinfo_keeps_the_rest_of_the_url(user in "\\PC{0,12}", password in "\\PC{0,12}",
            host in "[a-z]{1,8}\\.test(:[1-9][0-9]{0,3})?", rest in "[/?#]\\PC{0,20}|") {
            let Ok(mut url) = url::Url::parse(&format!("http://{host}{rest}")) else {
                return Ok(());
            };
            let bare = url.to_string();
            url.set_username(&user).unwrap();
            url.set_password(Some(&password)).unwrap();
            let page = PageUrl::parse(url.as_str());
            prop_assume!(page.is_ok());
            let shown = without_userinfo(page.unwrap().as_str());
            let read = url::Url::parse(&shown).unwrap();
            prop_assert_eq!((read.username(), read.password()), ("", None));
            if !bare["http://".len()..].contains("://") {
                prop_assert_eq!(&shown, &bare);
            }
            let public = url::Url::parse(&public_url(url.as_str())).unwrap();
            prop_assert_eq!((public.query(), public.fragment()), (None, None));
            prop_assert_eq!(public.host_str(), read.host_str());
        }

        #[test]
        fn no_text_panics_and_redaction_is_idempotent(text in "\\PC{0,40}|(://|@|/|a|\\?|\n){0,20}") {
            let shown = without_userinfo(&text);
            prop_assert!(shown.len() <= text.len());
            prop_assert_eq!(without_userinfo(&shown), shown);
        }
    }
}
