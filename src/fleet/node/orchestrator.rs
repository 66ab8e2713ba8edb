//! The conversation with the orchestrator of this machine, over the bus.

use archivist_core::fleet::{Delivery, Holdings};
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::wire::NodeProxy;
use std::future::pending;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use zbus::Connection;
use zbus::proxy::CacheProperties;

/// Limit for an answer of the orchestrator.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("{0}")]
    Failed(ClientError),
    /// The answer is not readable: the orchestrator has another version.
    #[error("failed to parse the answer of the orchestrator: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("no answer from the orchestrator within {} s", REPLY_TIMEOUT.as_secs())]
    Late,
}

/// The orchestrator of the machine. Calls do not start it.
pub(super) struct Orchestrator {
    address: Address,
    node: NodeProxy<'static>,
    /// The call that is answered when there is something new to send. Ends with an error if the
    /// orchestrator ends.
    news: Option<JoinHandle<zbus::Result<()>>>,
}

impl Orchestrator {
    pub async fn new(bus: &Connection) -> zbus::Result<Orchestrator> {
        let node = NodeProxy::builder(bus).cache_properties(CacheProperties::No).build().await?;
        Ok(Orchestrator { address: Address::new(false, None), node, news: None })
    }

    /// Returns what the orchestrator holds and wants. From then on, [`Orchestrator::news`] reports
    /// what is new.
    pub async fn holdings(&mut self) -> Result<Holdings, CallError> {
        if self.news.is_none() {
            let node = self.node.clone();
            self.news = Some(tokio::spawn(async move { node.wait().await }));
            // Sends the call before the next one.
            yield_now().await;
        }
        let text = self.answered(self.node.holdings()).await?;
        Ok(serde_json::from_str(&text)?)
    }

    pub async fn deliver(&self, delivery: &Delivery) -> Result<(), CallError> {
        let text = serde_json::to_string(delivery)?;
        self.answered(self.node.deliver(&text)).await
    }

    /// Makes the orchestrator release the hosts that have no running page.
    pub async fn stop(&self) -> Result<(), CallError> {
        self.answered(self.node.stop()).await
    }

    pub async fn leave(&self) -> Result<(), CallError> {
        self.answered(self.node.leave()).await
    }

    /// Returns when the orchestrator has something new to send, or has ended.
    pub async fn news(&mut self) {
        match &mut self.news {
            Some(call) => {
                // Either way the next question shows what there is.
                let _ = call.await;
                self.news = None;
            }
            None => pending().await,
        }
    }

    async fn answered<T>(
        &self,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, CallError> {
        let answer = timeout(REPLY_TIMEOUT, call).await;
        let answer = answer.map_err(|_| CallError::Late)?;
        answer.map_err(|error| CallError::Failed(self.address.explain(error)))
    }
}

/// No call outlives its caller.
impl Drop for Orchestrator {
    fn drop(&mut self) {
        if let Some(call) = &self.news {
            call.abort();
        }
    }
}
