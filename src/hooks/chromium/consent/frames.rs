//! The frames of a page, and those in which consent may be rejected with a click: frames of the page's own
//! site, and of known consent platforms. A page chooses what its frames show and where they lie, and a frame
//! of another site has the cookies of a persona for that site.

use super::PHRASES;
use crate::chromium::cdp::{CdpError, Session};
use serde::Deserialize;
use serde_json::json;
use std::net::IpAddr;
use url::{Host, Url};

/// Frames of a page that are searched for the buttons of a wall.
const FRAMES_MAX: usize = 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Id of the frame, which is that of its target, too.
    pub id: String,
    /// Its host; empty for a document that its parent has made.
    pub host: String,
    pub may_click: bool,
}

/// The frames of a page without the main frame.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub same_process: Vec<Frame>,
    pub other_processes: Vec<Frame>,
}

struct Sites<'a> {
    page: Option<String>,
    /// Hosts of consent platforms of the setting; their subdomains are meant, too.
    hosts: &'a [String],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tree {
    frame: InTree,
    #[serde(default)]
    child_frames: Vec<Tree>,
}

#[derive(Deserialize)]
struct InTree {
    id: String,
    #[serde(default)]
    url: String,
}

impl Frames {
    /// Finds the frames of a page. `main` is its main frame, `hosts` are those of `CHROMIUM_CONSENT_HOSTS`.
    pub(super) async fn of(
        session: &Session,
        main: &str,
        hosts: &[String],
    ) -> Result<Frames, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            frame_tree: Tree,
        }
        let answer: Answer = session.call("Page.getFrameTree", json!({})).await?;
        let sites = Sites { page: host(&answer.frame_tree.frame.url), hosts };
        let mut same_process = sites.judge(answer.frame_tree, main);
        same_process.truncate(FRAMES_MAX);
        let other_processes = other_processes(session, main, &sites).await?;
        Ok(Frames { same_process, other_processes })
    }
}

impl Sites<'_> {
    fn judge(&self, tree: Tree, main: &str) -> Vec<Frame> {
        let mut trees = vec![(tree, true)];
        let mut frames = Vec::new();
        while let Some((tree, is_parent_ours)) = trees.pop() {
            let InTree { id, url } = tree.frame;
            let host = host(&url);
            let may_click = match &host {
                _ if id == main => true,
                Some(host) => self.is_own(host) || self.is_platform(host),
                // A document that its parent has made.
                None => is_parent_ours,
            };
            let children = tree.child_frames.into_iter();
            trees.extend(children.map(|child| (child, may_click)));
            if id != main {
                let host = host.unwrap_or_default();
                frames.push(Frame { id, host, may_click });
            }
        }
        frames
    }

    /// Whether a frame that chromium keeps in the process of the page has its site: chromium does not
    /// separate sites if options say so.
    fn is_own(&self, host: &str) -> bool {
        let page = self.page.as_deref();
        page.is_some_and(|page| site(page) == site(host))
    }

    /// Whether a frame in another process has a host below that of the page. Chromium knows which sites
    /// share a domain, and has separated this one.
    fn is_below(&self, host: &str) -> bool {
        let page = self.page.as_deref();
        let page = page.map(|page| page.strip_prefix("www.").unwrap_or(page));
        page.is_some_and(|page| host == page || (page.contains('.') && is_at(host, page)))
    }

    fn is_platform(&self, host: &str) -> bool {
        let known = PHRASES["platforms"].as_array().into_iter().flatten();
        let known = known.filter_map(|one| one.as_str());
        let own = self.hosts.iter().map(String::as_str);
        known.chain(own).any(|platform| is_at(host, platform))
    }
}

/// Whether a host is this domain or below it.
fn is_at(host: &str, domain: &str) -> bool {
    let before = host.strip_suffix(domain);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Host of an http or https URL.
fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let is_web = ["http", "https"].contains(&url.scheme());
    match url.host().filter(|_| is_web)? {
        Host::Domain(name) => Some(name.trim_end_matches('.').to_owned()),
        address => Some(address.to_string()),
    }
}

/// The part of a host that its site has in common, by the usual form of names: two labels, or three below
/// a country's own classes (co.uk).
fn site(host: &str) -> &str {
    if host.parse::<IpAddr>().is_ok() || host.starts_with('[') {
        return host;
    }
    let labels: Vec<&str> = host.rsplit('.').collect();
    let is_class = labels.len() > 2 && labels[0].len() == 2 && labels[1].len() <= 3;
    let count = if is_class { 3 } else { 2 };
    let length = labels.iter().take(count).map(|label| label.len() + 1).sum::<usize>();
    &host[host.len().saturating_sub(length.saturating_sub(1))..]
}

/// The page's frames that are in other processes. They are found by the browser context, which contains no
/// other page.
async fn other_processes(
    session: &Session,
    main: &str,
    sites: &Sites<'_>,
) -> Result<Vec<Frame>, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Targets {
        target_infos: Vec<Target>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Target {
        target_id: String,
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        url: String,
        #[serde(default)]
        browser_context_id: String,
    }
    let filter = json!({"filter": [{"type": "iframe"}, {"type": "page"}]});
    let browser = session.connection().browser();
    let known: Targets = browser.call("Target.getTargets", filter).await?;
    let targets = known.target_infos;
    let own = targets.iter().find(|target| target.target_id == main);
    let context = own.map(|target| target.browser_context_id.clone());
    Ok(targets
        .into_iter()
        .filter(|target| target.kind == "iframe")
        .filter(|target| Some(&target.browser_context_id) == context.as_ref())
        .map(|target| {
            let host = host(&target.url);
            let may_click = (host.as_deref())
                .is_some_and(|host| sites.is_below(host) || sites.is_platform(host));
            Frame { id: target.target_id, host: host.unwrap_or_default(), may_click }
        })
        .take(FRAMES_MAX)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(id: &str, url: &str, children: Vec<Tree>) -> Tree {
        Tree { frame: InTree { id: id.to_owned(), url: url.to_owned() }, child_frames: children }
    }

    #[test]
    fn frames_of_other_sites_are_not_clicked() {
        let hosts = ["consent.corp.test".to_owned()];
        let sites = Sites { page: host("https://www.shop.co.uk/a"), hosts: &hosts };
        let frames = vec![
            tree("own", "https://cmp.shop.co.uk/", Vec::new()),
            tree("made", "about:srcdoc", Vec::new()),
            tree("bank", "https://bank.co.uk/", vec![tree("of bank", "about:blank", Vec::new())]),
            tree("platform", "https://cdn.privacy-mgmt.com/index.html", Vec::new()),
            tree("named", "https://eu.consent.corp.test/", Vec::new()),
            tree("like", "https://evilprivacy-mgmt.com/", Vec::new()),
        ];
        let page = tree("main", "https://www.shop.co.uk/a", frames);
        let mut clicked: Vec<String> = sites
            .judge(page, "main")
            .into_iter()
            .filter(|frame| frame.may_click)
            .map(|frame| frame.id)
            .collect();
        clicked.sort();
        assert_eq!(clicked, ["made", "named", "own", "platform"]);
    }

    #[test]
    fn process_of_its_own_is_another_site_unless_it_is_below_the_page() {
        let sites = |page: &str| Sites { page: host(page), hosts: &[] };
        let below = |page: &str, frame: &str| sites(page).is_below(frame);
        assert!(below("https://www.a.test/", "consent.a.test"));
        assert!(!below("https://a.github.io/", "b.github.io"));
        assert!(!below("https://a.test/", "bank.test"));
        assert!(!below("http://127.0.0.1/", "localhost"));
        assert!(!below("about:blank", "a.test"));
    }

    #[test]
    fn sites_have_two_labels_or_three() {
        for (host, expected) in [
            ("a.b.example.org", "example.org"),
            ("a.shop.co.uk", "shop.co.uk"),
            ("example.de", "example.de"),
            ("localhost", "localhost"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(site(host), expected);
        }
    }
}
