//! Rules of a site for robots (RFC 9309): allowed paths, delay, and sitemaps.
//!
//! Not by the crate texting_robots: it misses a group whose robot has a version (`Archivist/1.0`), and
//! takes two spellings of a path, such as `/é` and `/%c3%A9`, for two paths.

use std::time::Duration;

/// Most rules, and most sitemaps, of one file.
const MOST: usize = 2000;
/// Longest delay that is honoured.
const LONGEST_DELAY: f64 = 3600.0;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    rules: Vec<Rule>,
    /// `Crawl-delay`: the time between two requests. Not in the RFC, but widely used.
    pub delay: Option<Duration>,
    /// `Sitemap` lines as they stand, in order.
    pub sitemaps: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    allow: bool,
    pattern: String,
}

#[derive(Default)]
struct Groups {
    named: bool,
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

impl Robots {
    /// Parses the groups for the robot `name`, or for all robots if there are none. Invalid text is
    /// skipped: it forbids nothing.
    pub fn parse(text: &str, name: &str) -> Robots {
        let (mut ours, mut anybodys) = (Groups::default(), Groups::default());
        let mut sitemaps = Vec::new();
        let (mut for_us, mut for_all, mut in_rules) = (false, false, true);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    // Rules end the list of robots of a group.
                    if in_rules {
                        (for_us, for_all, in_rules) = (false, false, false);
                    }
                    for_us |= product(value).eq_ignore_ascii_case(name);
                    for_all |= value == "*";
                    ours.named |= for_us;
                }
                "sitemap" if sitemaps.len() < MOST => sitemaps.push(value.to_owned()),
                "allow" | "disallow" | "crawl-delay" => {
                    in_rules = true;
                    for (groups, meant) in [(&mut ours, for_us), (&mut anybodys, for_all)] {
                        if meant {
                            groups.take(&key, value);
                        }
                    }
                }
                _ => {}
            }
        }
        let delay = ours.delay.or(anybodys.delay);
        let groups = if ours.named { ours } else { anybodys };
        Robots { rules: groups.rules, delay, sitemaps }
    }

    /// Returns whether a path with its query is allowed: the longest matching rule decides, and of
    /// equal ones one that allows.
    pub fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| fits(&rule.pattern, &path));
        let longest = fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow));
        longest.is_none_or(|rule| rule.allow) || path == "/robots.txt"
    }
}

impl Groups {
    fn take(&mut self, key: &str, value: &str) {
        if key == "crawl-delay" {
            let seconds = value.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0);
            let delay = seconds.map(|s| Duration::from_secs_f64(s.min(LONGEST_DELAY)));
            self.delay = self.delay.or(delay);
        } else if !value.is_empty() && self.rules.len() < MOST {
            self.rules.push(Rule { allow: key == "allow", pattern: normal(value) });
        }
    }
}

/// `Archivist/1.0 (…)` → `Archivist`.
fn product(agent: &str) -> &str {
    let end = agent.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
    &agent[..end.unwrap_or(agent.len())]
}

/// Returns whether a pattern with `*` and a final `$` matches the start of a path. Each part is
/// searched once, after the previous one, so the time is linear.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return !to_the_end || rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    if to_the_end { rest.ends_with(last) } else { rest.contains(last) }
}

/// Normalizes paths for comparison: non-ASCII as `%XX`, letters and digits unescaped, hexadecimal
/// digits in capitals.
fn normal(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut normal = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |offset: usize| (*bytes.get(at + offset)? as char).to_digit(16);
        let coded = match (bytes[at], hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => Some((high * 16 + low) as u8),
            _ => None,
        };
        let byte = coded.unwrap_or(bytes[at]);
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (coded.is_none() && byte.is_ascii()) {
            normal.push(byte as char)
        } else {
            normal.push_str(&format!("%{byte:02X}"))
        }
        at += if coded.is_some() { 3 } else { 1 };
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allows(rules: &str, path: &str) -> bool {
        Robots::parse(&format!("User-agent: *\n{rules}"), "archivist").allows(path)
    }

    #[test]
    fn the_longest_rule_decides_and_at_a_tie_the_one_that_allows() {
        let rules = "Disallow: /shop\nAllow: /shop/open\nDisallow: /shop/open/not\n";
        assert!(allows(rules, "/"));
        assert!(!allows(rules, "/shop?x=1"));
        assert!(!allows(rules, "/shopping"));
        assert!(allows(rules, "/shop/open/a"));
        assert!(!allows(rules, "/shop/open/not"));
        assert!(allows("Disallow: /a\nAllow: /a\n", "/a"));
        assert!(allows("Disallow:\n", "/a"));
        assert!(!allows("Disallow: /\n", "/a"));
        assert!(allows("Disallow: /\n", "/robots.txt"));
    }

    #[test]
    fn stars_and_the_end() {
        assert!(!allows("Disallow: /*.php$\n", "/x/y.php"));
        assert!(allows("Disallow: /*.php$\n", "/x/y.php?z"));
        assert!(!allows("Disallow: *?*sid=\n", "/a?b=1&sid=2"));
        assert!(!allows("Disallow: /a*b*c\n", "/a-b-c-d"));
        assert!(allows("Disallow: /a*b*c\n", "/a-c-b"));
        assert!(!allows("Disallow: /*a*$\n", "/bab"));
        assert!(allows("Disallow: /$\n", "/x"));
        assert!(!allows("Disallow: /$\n", "/"));
    }

    #[test]
    fn spellings_of_one_path_are_one() {
        assert!(!allows("Disallow: /é\n", "/%c3%A9"));
        assert!(!allows("Disallow: /%7ejoe\n", "/~joe/x"));
        assert!(allows("Disallow: /a%2Fb\n", "/a/b"));
        assert!(!allows("Disallow: /a%2fb\n", "/a%2Fb"));
    }

    #[test]
    fn a_group_for_us_is_alone_and_all_of_them_count() {
        let text = "User-agent: other\nDisallow: /o\n\nUser-agent: *\nDisallow: /all\n\n\
            User-agent: x\nUser-Agent: Archivist/1.0\nDisallow: /us\n\nUser-agent: archivist\nDisallow: /too\n\
            Sitemap: https://a.test/map.xml\n";
        let robots = Robots::parse(text, "archivist");
        assert!(robots.allows("/o") && robots.allows("/all"));
        assert!(!robots.allows("/us") && !robots.allows("/too"));
        assert_eq!(robots.sitemaps, ["https://a.test/map.xml"]);
        assert!(!Robots::parse(text, "somebody").allows("/all"));
        let empty = "User-agent: *\nDisallow: /\nUser-agent: archivist\nCrawl-delay: 1\n";
        assert!(Robots::parse(empty, "archivist").allows("/a"));
    }

    #[test]
    fn the_delay_of_the_group_for_us_comes_first() {
        let delay = |text: &str| Robots::parse(text, "archivist").delay;
        let text = "User-agent: other\nCrawl-delay: 9\n\nUser-Agent: *\nDisallow: /x\nCrawl-Delay: 2.5 # s\n";
        assert_eq!(delay(text), Some(Duration::from_millis(2500)));
        let ours = format!("{text}User-agent: a\nUser-agent: Archivist/1\nCrawl-delay: 1\n");
        assert_eq!(delay(&ours), Some(Duration::from_secs(1)));
    }

    #[test]
    fn nonsense_is_no_delay() {
        let delay = |text: &str| Robots::parse(text, "archivist").delay;
        for value in ["-1", "NaN", "inf", "soon", ""] {
            assert_eq!(delay(&format!("User-agent: *\nCrawl-delay: {value}\n")), None);
        }
        assert_eq!(delay("Crawl-delay: 5"), None);
        let long = delay("User-agent: *\nCrawl-delay: 1e300").unwrap();
        assert_eq!(long, Duration::from_secs(3600));
    }

    #[test]
    fn hostile_patterns_take_linear_time() {
        let text = format!(
            "User-agent: *\n{}",
            format!("Disallow: /{}$\n", "*a".repeat(120)).repeat(2000)
        );
        let robots = Robots::parse(&text, "archivist");
        assert!(robots.allows(&format!("/{}b", "a".repeat(8000))));
    }

    proptest! {
        #[test]
        fn no_file_is_too_odd(text in "(?s).{0,400}", path in "(?s).{0,60}") {
            let robots = Robots::parse(&text, "archivist");
            robots.allows(&path);
        }

        #[test]
        fn patterns_match_like_the_naive_algorithm(pattern in "/[ab*]{0,8}\\$?", path in "/[ab]{0,8}") {
            prop_assert_eq!(fits(&pattern, &path), slow(pattern.as_bytes(), path.as_bytes()));
        }
    }

    /// The definition: `*` is any number of characters, `$` at the end is the end.
    fn slow(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) => true,
            (b"$", path) => path.is_empty(),
            ([b'*', rest @ ..], path) => (0..=path.len()).any(|n| slow(rest, &path[n..])),
            ([a, rest @ ..], [b, path @ ..]) if a == b => slow(rest, path),
            _ => false,
        }
    }
}
