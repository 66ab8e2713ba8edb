//! Cookies and passwords in the headers of requests and responses: what recordings leave out.

use crate::process::settings::PluginSettings;

/// Headers with passwords, which recordings leave out.
const PASSWORDS: [&str; 2] = ["authorization", "proxy-authorization"];
/// Headers with cookies.
const COOKIES: [&str; 2] = ["cookie", "set-cookie"];

/// Which headers are left out, in any case of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    passwords: bool,
    cookies: bool,
}

impl LeftOut {
    /// No header.
    pub const NONE: LeftOut = LeftOut { passwords: false, cookies: false };
    /// All secrets.
    pub const ALL: LeftOut = LeftOut { passwords: true, cookies: true };

    /// Of the recording of a page.
    pub fn of_recording(settings: &PluginSettings) -> LeftOut {
        if settings.text("WACZ_REDACT") == "cookies" { LeftOut::ALL } else { LeftOut::NONE }
    }

    /// Of the WARC file of wget, whose passwords have a setting of their own.
    pub fn of_warc(settings: &PluginSettings) -> LeftOut {
        let passwords = !settings.flag("WGET_KEEP_CREDENTIALS");
        LeftOut { passwords, ..LeftOut::of_recording(settings) }
    }

    /// Whether a header is left out of what a browser recorded: a cookie that scripts can read is part of the
    /// page.
    pub fn has_field(self, name: &str, value: &str) -> bool {
        self.has(name) && !(name.eq_ignore_ascii_case(COOKIES[1]) && is_readable(value))
    }

    /// Whether a header is left out.
    pub fn has(self, name: &str) -> bool {
        let is_of = |names: [&str; 2]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
        self.passwords && is_of(PASSWORDS) || self.cookies && is_of(COOKIES)
    }
}

/// Whether scripts can read the cookie of a `Set-Cookie` header (RFC 6265, section 5.2.6).
fn is_readable(value: &str) -> bool {
    let attributes = value.split(';').skip(1);
    let mut names = attributes.filter_map(|attribute| attribute.split('=').next());
    names.all(|name| !name.trim().eq_ignore_ascii_case("httponly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_decide_which_secrets_are_left_out() {
        let of = |left_out: LeftOut| {
            ["Authorization", "Proxy-Authorization", "Cookie", "SET-COOKIE", "Accept"]
                .map(|name| left_out.has(name))
        };
        assert_eq!(of(LeftOut::ALL), [true, true, true, true, false]);
        assert_eq!(of(LeftOut::NONE), [false; 5]);
        let has = |value| LeftOut::ALL.has_field("set-cookie", value);
        assert!(
            !has("a=httponly; Path=/") && has("a=1; HTTPONLY") && has("a=1;httpOnly=x; Path=/")
        );
        assert!(LeftOut::ALL.has_field("Cookie", "a=1") && !LeftOut::NONE.has_field("Cookie", ""));
        let settings = |schema: &str, set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            PluginSettings::new(schema, set.collect())
        };
        let wget = include_str!("../../../plugins/wget/config.json");
        assert_eq!(LeftOut::of_warc(&settings(wget, &[])), LeftOut::ALL);
        let kept = settings(wget, &[("WGET_KEEP_CREDENTIALS", "yes")]);
        assert_eq!(of(LeftOut::of_warc(&kept)), [false, false, true, true, false]);
        assert_eq!(LeftOut::of_recording(&kept), LeftOut::ALL);
        let kept = settings(wget, &[("WACZ_REDACT", "no")]);
        assert_eq!(of(LeftOut::of_warc(&kept)), [true, true, false, false, false]);
        assert_eq!(LeftOut::of_recording(&kept), LeftOut::NONE);
    }
}
