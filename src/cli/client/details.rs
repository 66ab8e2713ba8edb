//! Everything about a crawl, snapshot or run, from the fleet and from this machine.

use crate::client::exit::Failure;
use crate::client::fleet::{Fleet, Local};
use crate::client::server::Server;
use archivist_config::Scope;
use archivist_core::model::{AnyId, Owner};
use archivist_shared::bus::documents::report::{Crawl, Details, Snapshot};

/// Queries the document about `id`. Runs are known to their machine alone.
pub async fn fetch(id: AnyId, local: Local, scope: &Scope) -> Result<String, Failure> {
    let fleet = Fleet::reach(scope, local).await?;
    if let (AnyId::Owner(id), Some(fleet)) = (id, fleet) {
        let details = of_fleet(id, &fleet, scope).await?;
        return serde_json::to_string(&details)
            .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")));
    }
    let server = Server::reach(scope).await?;
    let id = id.to_string();
    server.call(|| server.proxy().show(&id)).await
}

/// Queries the fleet, and this machine, which knows more of what it works on. A crawl that was just
/// added may not have reached the fleet.
async fn of_fleet(id: Owner, fleet: &Fleet, scope: &Scope) -> Result<Details, Failure> {
    let wide = fleet.show(id).await;
    let here = match Server::reach(scope).await {
        Ok(server) => {
            let id = id.to_string();
            server.ask(|| server.proxy().show(&id)).await
        }
        Err(failure) => Err(failure),
    };
    match (wide, here) {
        (Ok(wide), Ok(here)) => Ok(merged(wide, here, |node| fleet.is_here(node))),
        (Ok(wide), Err(_)) => Ok(wide),
        (Err(failure), Ok(here)) if !failure.is_unreachable() => Ok(here),
        (Err(failure), _) => Err(failure),
    }
}

/// Returns what the fleet knows, with the runs of this machine; of a page on this machine, what the
/// machine knows.
fn merged(wide: Details, here: Details, is_here: impl Fn(Option<&str>) -> bool) -> Details {
    match (wide, here) {
        (
            Details::Crawl { crawl, snapshots, results, .. },
            Details::Crawl { crawl: known, runs, .. },
        ) => Details::Crawl {
            crawl: Crawl { directory: known.directory, users: known.users, ..crawl },
            snapshots,
            results,
            runs,
        },
        (
            Details::Snapshot { snapshot, .. },
            Details::Snapshot { snapshot: known, results, runs, copy },
        ) if is_here(snapshot.node.as_deref()) => Details::Snapshot {
            snapshot: Snapshot {
                node: snapshot.node,
                older_copies: snapshot.older_copies,
                parent: snapshot.parent,
                ..known
            },
            results,
            runs,
            copy,
        },
        (wide, _) => wide,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::details::short;
    use crate::display::style::Style;
    use crate::sample;
    use archivist_core::model::Lifecycle;

    #[test]
    fn a_page_on_this_machine_is_shown_as_the_machine_knows_it() {
        let page = |status, node: Option<&str>, directory: Option<&str>| Details::Snapshot {
            snapshot: Snapshot {
                status,
                node: node.map(str::to_owned),
                directory: directory.map(str::to_owned),
                ..sample::snapshot(3)
            },
            results: Vec::new(),
            runs: Vec::new(),
            copy: None,
        };
        let shown = |node| {
            let wide = page(Lifecycle::Started, Some(node), None);
            let here = page(Lifecycle::Sealed, None, Some("/var/lib/archivist/s3"));
            short(&merged(wide, here, |node| node == Some("web1")), &Style::plain(sample::NOW))
        };
        let here = shown("web1");
        assert!(here.contains("Status: sealed"), "{here}");
        assert!(here.contains("Node: web1\n") && here.contains("Directory: /var"), "{here}");
        let elsewhere = shown("web2");
        assert!(elsewhere.contains("Status: started"), "{elsewhere}");
        assert!(
            elsewhere.contains("Node: web2\n") && !elsewhere.contains("Directory"),
            "{elsewhere}"
        );
    }
}
