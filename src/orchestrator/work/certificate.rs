//! Which hosts get the client certificate of a crawl.

use crate::database::CrawlWork;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::PageUrl;
use std::collections::BTreeSet;

/// The setting with the certificate; a persona may have one, too.
const CERTIFICATE: &str = "CLIENT_CERTIFICATE";
const HOSTS: &str = "CLIENT_CERTIFICATE_HOSTS";
/// Longest list of hosts in bytes.
const BYTES_MAX: usize = 64 << 10;

/// Sets the hosts that get a client certificate to those of the pages that users gave to the crawl, with and
/// without www., unless a setting names them. Hosts that pages name are not among them.
pub(super) fn name_hosts(
    turn: &Turn<'_>,
    crawl: &CrawlWork,
    environment: &mut [(String, String)],
) -> TurnResult<()> {
    let is_set =
        |name: &str| environment.iter().any(|(key, value)| key == name && !value.is_empty());
    let has_persona = crawl.persona.as_ref().is_some_and(|name| !name.is_empty());
    if !has_persona && !is_set(CERTIFICATE) {
        return Ok(());
    }
    let mut settings = environment.iter_mut();
    let setting = settings.find(|(key, _)| key == HOSTS);
    let Some((_, setting)) = setting.filter(|(_, value)| ["", "[]"].contains(&value.as_str()))
    else {
        return Ok(());
    };
    let mut hosts = BTreeSet::new();
    let mut bytes = 0;
    for url in turn.tx.start_hosts(crawl.id)? {
        let Ok(url) = PageUrl::parse(&url) else {
            continue;
        };
        let host = url.host().trim_start_matches("www.").to_owned();
        bytes += 2 * host.len() + 16;
        if bytes > BYTES_MAX {
            break;
        }
        hosts.insert(format!("www.{host}"));
        hosts.insert(host);
    }
    *setting = serde_json::to_string(&hosts)?;
    Ok(())
}
