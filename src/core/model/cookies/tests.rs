//! Files of cookies in all formats, and any bytes.

use super::*;
use proptest::prelude::*;

/// Returns the lines of the cookies without the comment at the beginning, and what is refused.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let file = CookieFile::read(text.as_bytes(), None).unwrap();
    let refused = file.refused.iter().map(ToString::to_string).collect();
    let lines = file.to_netscape();
    (lines.lines().skip(1).map(str::to_owned).collect(), refused)
}

#[test]
fn netscape_lines_are_read_with_tabs_and_with_blanks() {
    let text = "\u{feff}# Netscape HTTP Cookie File\r\n\r\n\
        a.test\tFALSE\t/x\tFALSE\t0\tid\tone\ttwo\r\n\
        #HttpOnly_.b.test\tTRUE\t/\tTRUE\t1900000000\tkey\t\r\n\
        c.test\tTRUE\t/\tFALSE\t1900000000.5\tempty\n\
        .d.test  TRUE   /    false  1900000000  name   value = x\n\
        #HttpOnly_e.test FALSE / TRUE 1900000000000 ms v\n\
        broken line\n\
        f.test\tMAYBE\t/\tTRUE\t0\ta\tb\n\
        g.test/x\tTRUE\t/\tTRUE\t0\ta\tb";
    let (cookies, refused) = read(text);
    assert_eq!(
        cookies,
        [
            "a.test\tFALSE\t/x\tFALSE\t0\tid\tone\ttwo",
            "#HttpOnly_.b.test\tTRUE\t/\tTRUE\t1900000000\tkey\t",
            ".c.test\tTRUE\t/\tFALSE\t1900000001\tempty\t",
            ".d.test\tTRUE\t/\tFALSE\t1900000000\tname\tvalue = x",
            "#HttpOnly_e.test\tFALSE\t/\tTRUE\t1900000000\tms\tv",
        ]
    );
    assert_eq!(refused.len(), 3);
    assert!(refused[0].starts_with("line 8 refused: it is not a cookie in Netscape format"));
    assert!(refused[1].starts_with("line 9 "));
    assert_eq!(refused[2], "line 10 refused: 'g.test/x' is not the name of a host");
}

#[test]
fn exports_of_extensions_and_tools_are_read() {
    for (text, want) in [
        // Cookie-Editor and EditThisCookie.
        (
            r#"[{"domain":".a.test","expirationDate":1900000000.25,"hostOnly":false,"httpOnly":true,
                "name":"id","path":"/","sameSite":"no_restriction","secure":true,"session":false,
                "storeId":"0","value":"x","id":1}]"#,
            "#HttpOnly_.a.test\tTRUE\t/\tTRUE\t1900000001\tid\tx",
        ),
        (
            r#"[{"domain":"a.test","hostOnly":true,"httpOnly":false,"name":"id","path":"/p",
                "sameSite":null,"secure":false,"session":true,"value":""}]"#,
            "a.test\tFALSE\t/p\tFALSE\t0\tid\t",
        ),
        // Playwright.
        (
            r#"{"cookies":[{"name":"id","value":"x","domain":"a.test","path":"/","expires":-1,
                "httpOnly":false,"secure":false,"sameSite":"Lax"}],"origins":[]}"#,
            "a.test\tFALSE\t/\tFALSE\t0\tid\tx",
        ),
        // Selenium.
        (
            r#"[{"domain":".a.test","expiry":1900000000,"httpOnly":false,"name":"id","path":"/",
                "sameSite":"Lax","secure":true,"value":"x"}]"#,
            ".a.test\tTRUE\t/\tTRUE\t1900000000\tid\tx",
        ),
        // J2TEAM Cookies, and a date.
        (
            r#"{"url":"https://a.test","cookies":[{"domain":"a.test","name":"id","value":"x",
                "expires":"2030-03-17T17:46:40.000Z"}]}"#,
            "a.test\tFALSE\t/\tFALSE\t1900000000\tid\tx",
        ),
        // Cookie Quick Manager.
        (
            r#"[{"Host raw":"https://.a.test/","Name raw":"id","Path raw":"/","Content raw":"x",
                "Expires raw":"1900000000","Send for raw":"true","HTTP only raw":"true",
                "This domain only raw":"false","Store raw":"firefox-default"}]"#,
            "#HttpOnly_.a.test\tTRUE\t/\tTRUE\t1900000000\tid\tx",
        ),
    ] {
        assert_eq!(read(text), (vec![want.to_owned()], Vec::new()), "{text}");
    }
}

#[test]
fn elements_that_are_no_cookies_are_named() {
    let text = r#"[{"name":"a","value":"1"},{"domain":"a.test","value":"1"},7,
        {"domain":"a.test","name":"a","value":"\n"},
        {"domain":"a.test","name":"a","value":"1","expires":"soon"},
        {"domain":"a.test","name":"a","value":"1"}]"#;
    let (cookies, refused) = read(text);
    assert_eq!(cookies.len(), 1);
    assert_eq!(
        refused,
        [
            "element 1 refused: it has no \"domain\"",
            "element 2 refused: it has no \"name\"",
            "element 3 refused: it is not a JSON object",
            "element 4 refused: its value contains a control character or is not UTF-8",
            "element 5 refused: its expiry is neither a number nor a date",
        ]
    );
}

#[test]
fn a_header_needs_a_host() {
    let of = |text: &str, host: Option<&str>| -> Result<String, String> {
        let file = CookieFile::read(text.as_bytes(), host)?;
        Ok(file.to_netscape().lines().skip(1).collect::<Vec<_>>().join(" "))
    };
    let both = "a.test\tFALSE\t/\tFALSE\t0\tid\tx=1 a.test\tFALSE\t/\tTRUE\t0\t__Host-k\t";
    for text in ["Cookie: id=x=1; __Host-k=", "cookie:id=x=1;__Host-k=;\r\n", "id=x=1; __Host-k="] {
        assert_eq!(of(text, Some("A.test")), Ok(both.to_owned()), "{text}");
        assert!(of(text, None).unwrap_err().contains("--host"));
    }
    let request = "GET /?x=1 HTTP/1.1\r\nHost: a.test:8080\r\nCookie: id=x=1; __Host-k=\r\n";
    assert_eq!(of(request, None), Ok(both.to_owned()));
    assert_eq!(of("id=x", Some(".a.test")).unwrap(), ".a.test\tTRUE\t/\tFALSE\t0\tid\tx");
    assert!(of("id=x", Some("a b")).unwrap_err().contains("name of a host"));
    let file = CookieFile::read(b"Cookie: a=1; b", Some("a.test")).unwrap();
    assert_eq!(
        file.refused[0].to_string(),
        "line 1 refused: a part of the header is not NAME=VALUE"
    );
}

#[test]
fn other_files_are_named() {
    for (text, why) in [
        ("SQLite format 3\0", "--profile"),
        ("<html>", "HTML"),
        ("[{", "broken JSON"),
        ("{\"log\":{}}", "HAR"),
        ("{}", "without an array of cookies"),
    ] {
        let error = CookieFile::read(text.as_bytes(), None).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn the_summary_counts_cookies_hosts_and_expired_ones() {
    let summary = |text: &str| CookieFile::read(text.as_bytes(), None).unwrap().summary(1000);
    let line = |host: &str, expires: u32, name: &str| {
        format!("{host}\tFALSE\t/\tFALSE\t{expires}\t{name}\tv\n")
    };
    let one = line("a.test", 0, "a");
    assert_eq!(summary(&one), "1 cookie for 1 host, none has expired");
    let more = one.clone() + &one + &line("a.test", 999, "b") + &line("b.test", 1001, "b");
    assert_eq!(summary(&more), "3 cookies for 2 hosts, 1 has expired");
    let secret =
        format!("{:?}", CookieFile::read(b"a.test\tFALSE\t/\tFALSE\t0\tn\tpassword", None));
    assert!(!secret.contains("password"), "{secret}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, start in "(\\[\\{\"domain\":\"a\",|a\tTRUE\t/\tTRUE\t0\ta|Cookie: |)") {
        let bytes = [start.as_bytes(), &bytes].concat();
        let _ = CookieFile::read(&bytes, Some("a.test"));
    }

    #[test]
    fn cookies_read_back(lines in prop::collection::vec("(#HttpOnly_)?\\.?[a-z]{1,5}\\.test[\t ](TRUE|FALSE)[\t ]/[a-z]{0,3}[\t ](TRUE|FALSE)[\t ][0-9]{1,13}[\t ][a-z=]{1,3}[\t ]\\PC{0,6}", 0..6)) {
        let file = CookieFile::read(lines.join("\n").as_bytes(), None);
        if let Ok(file) = file {
            let again = CookieFile::read(file.to_netscape().as_bytes(), None).unwrap();
            prop_assert_eq!(&again.cookies, &file.cookies);
            prop_assert!(again.refused.is_empty(), "{:?}", again.refused);
        }
    }
}
