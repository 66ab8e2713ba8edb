//! `--repair`: what was printed, and nothing else.

use super::finding::{Repair, Report};
use crate::client::exit::Failure;
use crate::client::fleet::Orders;
use crate::client::server::Server;
use crate::display::style;
use crate::verb::retry;
use archivist_core::model::{IdMarks, Owner};
use archivist_shared::config::Scope;
use archivist_shared::id_marks;
use nix::unistd::{Gid, Uid, getegid, geteuid, setegid, seteuid};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Carries out the repairs of a report, and marks what is repaired.
pub async fn repair(
    report: &mut Report,
    server: &Server,
    scope: &Scope,
    prints: bool,
) -> Result<(), Failure> {
    let orders = Orders::begin(scope).await;
    for finding in &mut report.findings {
        let done = match &finding.repair {
            None => continue,
            Some(Repair::Retry(id)) => {
                retry::all_hooks(Owner::Snapshot(*id), &orders, server).await?;
                format!("{id} queued again")
            }
            Some(Repair::Ids(ids)) => {
                let archive = scope.data_dir().join("archive");
                raise(&archive, *ids).map_err(|error| {
                    let directory = archive.join(IdMarks::DIRECTORY);
                    Failure::failed(format!(
                        "failed to write '{}': {error}",
                        directory.display()
                    ))
                })?;
                // The orchestrator compares its ids with those of the archive again.
                server.call(|| server.proxy().reload()).await?;
                format!("new ids are higher than {ids}")
            }
        };
        finding.repaired = true;
        if prints {
            style::print(&format!("{done}\n"))?;
        }
    }
    Ok(())
}

/// Writes the marks of the archive as its owner, who removes them later.
fn raise(archive: &Path, ids: IdMarks) -> io::Result<()> {
    let owner = archive.metadata()?;
    let own = (geteuid(), getegid());
    if !own.0.is_root() || owner.uid() == 0 {
        return id_marks::raise(archive, ids);
    }
    setegid(Gid::from_raw(owner.gid()))?;
    seteuid(Uid::from_raw(owner.uid()))?;
    let raised = id_marks::raise(archive, ids);
    seteuid(own.0)?;
    setegid(own.1)?;
    raised
}
