//! The interface of the fleet service about itself and the nodes. Questions about the database open
//! a connection of their own.

use crate::connect::{Link, Problem, Secrets, Target};
use crate::members::{self, Removal};
use crate::schema;
use archivist_shared::bus::callers;
use archivist_shared::bus::documents::fleet::NodeState;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

/// Name of the connection in the server's list.
const NAME: &str = "archivist fleet";

/// A request to leave the fleet; the answer is whether the node has left.
pub(super) type Leave = oneshot::Sender<Result<bool, String>>;

/// Object `org.archivist1.FleetNode`. The bus policy decides who may call it; what changes the fleet is
/// refused here, too, unless root asks.
pub(super) struct FleetNode {
    pub states: watch::Receiver<NodeState>,
    pub leaves: mpsc::UnboundedSender<Leave>,
    pub target: Target,
    pub secrets: Secrets,
}

impl FleetNode {
    async fn link(&self) -> fdo::Result<Link> {
        let link = Link::open(&self.target, &self.secrets, NAME).await;
        let link = link.map_err(failed)?;
        schema::check(&link).await.map_err(failed)?;
        Ok(link)
    }

    async fn set_draining(&self, node: &str, draining: bool) -> fdo::Result<bool> {
        let link = self.link().await?;
        let is_known = members::drain(&link, node, draining).await;
        if !is_known.map_err(failed)? {
            return Err(unknown(node));
        }
        if !draining {
            return Ok(true);
        }
        members::until_drained(&link, node).await.map_err(failed)
    }
}

/// Refuses callers other than root.
async fn require_root(connection: &Connection, header: &Header<'_>) -> fdo::Result<()> {
    let why = "only root drains and removes nodes, and declares that the database was restored";
    callers::require(connection, header, may_administrate, why).await
}

/// Whether the user of this id decides where the work of all members runs.
fn may_administrate(user: u32) -> bool {
    user == 0
}

#[interface(name = "org.archivist1.FleetNode")]
impl FleetNode {
    async fn state(&self) -> fdo::Result<String> {
        text(&self.states.borrow().clone())
    }

    async fn settled(&self) -> fdo::Result<String> {
        let mut states = self.states.clone();
        let is_known = |state: &NodeState| state.works || state.fault.is_some();
        let state = states.wait_for(is_known).await.map_err(|_| stopping())?;
        text(&state.clone())
    }

    async fn nodes(&self) -> fdo::Result<String> {
        let link = self.link().await?;
        text(&members::fleet(&link).await.map_err(failed)?)
    }

    async fn drain(
        &self,
        node: &str,
        draining: bool,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<bool> {
        require_root(connection, &header).await?;
        self.set_draining(node, draining).await
    }

    async fn remove(
        &self,
        node: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        require_root(connection, &header).await?;
        let link = self.link().await?;
        match members::remove(&link, node).await.map_err(failed)? {
            Removal::Done => Ok(()),
            Removal::Unknown => Err(unknown(node)),
            Removal::Alive => Err(fdo::Error::Failed(format!(
                "node '{node}' was seen a moment ago: run 'archivist fleet leave' on that machine"
            ))),
        }
    }

    /// Returns the milliseconds until hosts are leased again.
    async fn restored(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<u64> {
        require_root(connection, &header).await?;
        let mut link = self.link().await?;
        let pause = members::restored(&mut link).await.map_err(failed)?;
        Ok(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
    }

    async fn leave(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<bool> {
        require_root(connection, &header).await?;
        let name = self.states.borrow().name.clone();
        self.set_draining(&name, true).await?;
        let (reply, answer) = oneshot::channel();
        self.leaves.send(reply).map_err(|_| stopping())?;
        let left = answer.await.map_err(|_| stopping())?;
        left.map_err(fdo::Error::Failed)
    }
}

fn text(document: &impl Serialize) -> fdo::Result<String> {
    serde_json::to_string(document).map_err(|error| fdo::Error::Failed(error.to_string()))
}

fn failed(problem: Problem) -> fdo::Error {
    fdo::Error::Failed(problem.to_string())
}

fn unknown(node: &str) -> fdo::Error {
    let node = node.escape_debug();
    fdo::Error::Failed(format!("the fleet has no node '{node}'; see: archivist fleet nodes"))
}

fn stopping() -> fdo::Error {
    fdo::Error::NoReply("the service is stopping".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_administrates() {
        assert!(may_administrate(0));
        for user in [1, 999, 1000, u32::MAX] {
            assert!(!may_administrate(user), "{user}");
        }
    }
}
