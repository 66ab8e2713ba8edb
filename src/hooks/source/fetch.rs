//! Fetches one URL with curl(1): the headers of every response including redirects, and the start
//! of the body.
//!
//! Hooks use curl instead of the HTTP client of site checks, because the contract of plugins
//! promises curl's behaviour: `COOKIES_FILE` is a Netscape cookie file of the persona,
//! `*_ARGS_EXTRA` are curl options (proxies, client certificates, address overrides), and
//! `CURL_BINARY` selects the program. Curl also speaks HTTP/2 and ends at the hook's deadline with
//! the part of the body that arrived. Its process runs under the hook's address filter, whose
//! refusal `process::reach` explains. Site checks need the time until the headers, a filter for each
//! connection and thousands of requests for each process, which curl(1) does not offer.

use crate::certificates::client_certificate;
use crate::page::response::ResponseHead;
use crate::process::capture::OutputLimits;
use crate::process::exit::{ExitReason, ProgramOutput};
use crate::process::finding::Finding;
use crate::process::invocation::{ALLOWS_MORE, Invocation};
use crate::process::program::ProgramRunner;
use crate::process::reach;
use crate::process::scratch::Scratch;
use crate::visit::identity;
use std::process::Command;
use std::time::{Duration, Instant};
use url::Url;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 20;

/// Exit status of curl when its time limit was reached.
const TIMED_OUT: i32 = 28;

#[derive(Debug)]
pub struct Fetched {
    /// Every response in order; never empty.
    pub hops: Vec<ResponseHead>,
    /// The start of the last body, up to the requested number of bytes.
    pub body: Vec<u8>,
    /// The error after the headers arrived, if any: the body may be incomplete or empty.
    pub problem: Option<String>,
}

impl Fetched {
    pub fn last(&self) -> &ResponseHead {
        &self.hops[self.hops.len() - 1]
    }
}

/// Fetches a URL, follows redirects to http and https only, and keeps `most` bytes of the body.
///
/// `within` limits this transfer; the part of the body that arrived by then is kept. Fails when no
/// response arrived, or when the target of a redirect did not answer.
pub fn get(
    runner: &mut ProgramRunner,
    invocation: &Invocation,
    url: &Url,
    most: u64,
    within: Duration,
) -> Result<Fetched, Finding> {
    let scratch = Scratch::new("curl")?;
    let certificate = client_certificate::of(invocation)?;
    if certificate.is_none_or(|found| found.is_for_all()) {
        return transfer(runner, invocation, &scratch, &Leg { url, most, within, follows: true });
    }
    // curl would send the certificate to the host of a redirect, too.
    let end = Instant::now() + within;
    let mut hops: Vec<ResponseHead> = Vec::new();
    let mut url = without_fragment(url);
    loop {
        let within = end.saturating_duration_since(Instant::now());
        let leg = Leg { url: &url, most, within, follows: false };
        let fetched = transfer(runner, invocation, &scratch, &leg);
        let target = Some(&url).filter(|_| !hops.is_empty());
        let mut fetched = fetched.map_err(|finding| reach::with_explanation(finding, target))?;
        let last = Some(fetched.last()).filter(|last| last.is_redirect());
        let next = last.and_then(ResponseHead::target);
        hops.append(&mut fetched.hops);
        match next {
            Some(next) if hops.len() <= REDIRECTS_MAX => url = next,
            _ => return Ok(Fetched { hops, ..fetched }),
        }
    }
}

/// One call of curl.
struct Leg<'a> {
    url: &'a Url,
    most: u64,
    within: Duration,
    follows: bool,
}

fn transfer(
    runner: &mut ProgramRunner,
    invocation: &Invocation,
    scratch: &Scratch,
    leg: &Leg<'_>,
) -> Result<Fetched, Finding> {
    let Leg { url, most, within, follows } = *leg;
    let dump = scratch.path("headers");
    let mut command = Command::new(invocation.settings.text("CURL_BINARY"));
    command.args(["--disable", "--silent", "--show-error", "--globoff"]);
    if follows {
        command.args(["--location", "--max-redirs", &REDIRECTS_MAX.to_string()]);
    }
    command.args([
        "--proto",
        "=http,https",
        "--proto-redir",
        "=http,https",
        "--suppress-connect-headers",
    ]);
    command.args(["--no-buffer", "--compressed", "--output", "-", "--dump-header"]).arg(&dump);
    command.args(["--max-time", &format!("{:.1}", within.as_secs_f64().max(0.1))]);
    if !invocation.settings.flag("CHECK_SSL_VALIDITY") {
        command.arg("--insecure");
    }
    command.args(["--user-agent", &identity::user_agent(invocation, "USER_AGENT")]);
    let languages = identity::accept_language(invocation);
    if !languages.is_empty() {
        command.args(["--header", &format!("Accept-Language: {languages}")]);
    }
    // Without a file, curl keeps cookies between redirects alone: a site that sets a cookie and
    // redirects to itself would redirect for ever.
    command.args(["--cookie", &invocation.settings.text("COOKIES_FILE")]);
    if !follows {
        // The cookies of a redirect are for the next call.
        let jar = scratch.path("cookies");
        command.arg("--cookie").arg(&jar).arg("--cookie-jar").arg(jar);
    }
    let certificate = client_certificate::of(invocation)?;
    if let Some(found) = certificate.filter(|found| found.is_for(url)) {
        command.arg("--cert").arg(found.certificate);
        command.arg("--key").arg(found.key);
    }
    command.args(invocation.settings.list(&format!("{}_ARGS_EXTRA", invocation.prefix())));
    if let Some(credentials) = &invocation.credentials
        && credentials.belong_to(url)
    {
        let config = scratch.write("config", &credentials.curl_config())?;
        command.arg("--config").arg(config);
    }
    command.arg("--url").arg(without_fragment(url).as_str());
    let limits = OutputLimits {
        output: usize::try_from(most).unwrap_or(usize::MAX),
        ..OutputLimits::default()
    };
    let ended = runner.run(&mut command, "curl", limits)?;
    let hops = parse_hops(&String::from_utf8_lossy(&std::fs::read(&dump).unwrap_or_default()), url);
    judge(ended, hops, runner)
}

fn judge(
    ended: ProgramOutput,
    hops: Vec<ResponseHead>,
    runner: &ProgramRunner,
) -> Result<Fetched, Finding> {
    let problem =
        (!matches!(ended.exit, ExitReason::Exited(0) | ExitReason::OutputLimit)).then(|| {
            let reason = ended.exit.describe("curl", runner.budget);
            let message = ended.log.lines().rev().find_map(|line| line.strip_prefix("curl: "));
            message.map_or(reason.clone(), |message| format!("{reason}: {message}"))
        });
    let arrived = hops.last().is_some_and(|hop| !hop.is_redirect());
    match problem {
        Some(reason) if !arrived => {
            let is_late =
                matches!(ended.exit, ExitReason::Exited(TIMED_OUT) | ExitReason::TimedOut);
            let reason = if is_late { format!("{reason} {ALLOWS_MORE}") } else { reason };
            let finding = Finding::failed(reason);
            // The hook's caller explains failures of the hook's own URL; this one is the target of
            // a redirect.
            let target = hops.last().and_then(|hop| hop.url.join(hop.header("location")?).ok());
            Err(reach::with_explanation(finding, target.as_ref()))
        }
        None if hops.is_empty() => Err(Finding::failed("the server sent no HTTP headers")),
        problem => Ok(Fetched { hops, body: ended.output, problem }),
    }
}

fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

/// Parses the output of `--dump-header`: blocks of headers, one for each response, from which the
/// URLs of redirects follow.
///
/// Skips interim responses (1xx). A redirect without a valid Location ends the chain.
pub fn parse_hops(dump: &str, start: &Url) -> Vec<ResponseHead> {
    let mut hops: Vec<ResponseHead> = Vec::new();
    let mut url = start.clone();
    for block in blocks(dump) {
        let Some((status, reason)) = status_line(block[0]) else {
            continue;
        };
        if (100..200).contains(&status) {
            continue;
        }
        let headers = block[1..]
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_string()));
        let hop = ResponseHead { url: url.clone(), status, reason, headers: headers.collect() };
        if hop.is_redirect()
            && let Some(next) = hop.header("location").and_then(|target| url.join(target).ok())
        {
            url = next;
        }
        hops.push(hop);
    }
    hops
}

fn blocks(dump: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in dump.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match blocks.last_mut() {
            Some(block) if !line.starts_with("HTTP/") => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    blocks
}

fn status_line(line: &str) -> Option<(u16, String)> {
    let (_, rest) = line.strip_prefix("HTTP/")?.split_once(' ')?;
    let (number, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((number.parse().ok()?, reason.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "HTTP/1.1 301 Moved\r\nLocation: /b?x=1\r\nX: a: b\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\nHTTP/2 302\r\nlocation: //other.test/c\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n";

    #[test]
    fn each_response_has_its_url() {
        let hops = parse_hops(DUMP, &Url::parse("http://a.test/a").unwrap());
        let seen: Vec<_> = hops.iter().map(|hop| (hop.url.as_str(), hop.status)).collect();
        assert_eq!(
            seen,
            [("http://a.test/a", 301), ("http://a.test/b?x=1", 302), ("http://other.test/c", 200)]
        );
        assert_eq!(hops[0].header("x"), Some("a: b"));
        assert_eq!(hops[1].reason, "");
        assert_eq!(hops[2].headers.len(), 3);
    }

    #[test]
    fn malformed_dumps_have_no_responses() {
        let url = Url::parse("http://a.test/").unwrap();
        for dump in
            ["", "\r\n\r\n", "garbage", "HTTP/1.1\r\n", "HTTP/1.1 many OK\r\nA: b\r\n", ": \r\n:"]
        {
            assert!(parse_hops(dump, &url).is_empty(), "{dump:?}");
        }
    }
}
