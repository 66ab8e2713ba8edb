//! The worker's connection to the orchestrator, which may be restarted or replaced at any time. All
//! calls are idempotent and are repeated if no answer arrives.

use archivist_core::model::Verdict;
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::documents::work::{Ended, Report, Standing};
use archivist_shared::bus::wire::WorkerProxy;
use futures_util::StreamExt;
use std::cell::RefCell;
use std::fs::File;
use std::time::Duration;
use zbus::Fd;
use zbus::fdo::DBusProxy;

/// Time without a bus after which the worker gives up.
const BUS_GONE_MAX: Duration = Duration::from_secs(60);

pub struct Link {
    address: Address,
    token: String,
    proxy: RefCell<WorkerProxy<'static>>,
}

impl Link {
    pub async fn connect(address: Address, token: String) -> Result<Link, ClientError> {
        let proxy = RefCell::new(address.worker().await?);
        Ok(Link { address, token, proxy })
    }

    fn proxy(&self) -> WorkerProxy<'static> {
        self.proxy.borrow().clone()
    }

    /// Registers the worker. Returns what is on record about its hooks.
    pub async fn attach(&self) -> Result<Standing, ClientError> {
        loop {
            match self.proxy().attach(&self.token).await {
                Ok(text) => return parse(&text),
                Err(error) => self.wait_until_reachable(error).await?,
            }
        }
    }

    pub async fn run(&self, hook: &str, stdout: &File) -> Result<Ended, ClientError> {
        loop {
            match self.proxy().run(&self.token, hook, Fd::from(stdout)).await {
                Ok(text) => return parse(&text),
                Err(error) => self.wait_until_reachable(error).await?,
            }
        }
    }

    pub async fn stop(&self, hook: &str, force: bool) -> Result<(), ClientError> {
        loop {
            match self.proxy().stop(&self.token, hook, force).await {
                Ok(()) => return Ok(()),
                Err(error) => self.wait_until_reachable(error).await?,
            }
        }
    }

    /// Reports a result. Returns the recorded verdict when the report is on disk.
    pub async fn report(&self, report: &Report) -> Result<Verdict, ClientError> {
        let text = serde_json::to_string(report).unwrap_or_default();
        loop {
            match self.proxy().report(&self.token, &text).await {
                Ok(verdict) => return parse(&verdict),
                Err(error) => self.wait_until_reachable(error).await?,
            }
        }
    }

    /// Returns the InvocationID of the newest run of a hook when the journal has everything that it
    /// logged; an empty text if the orchestrator refuses the call.
    pub async fn invocation(&self, hook: &str) -> Result<String, ClientError> {
        loop {
            match self.proxy().invocation(&self.token, hook).await {
                Ok(invocation) => return Ok(invocation),
                Err(error) => match self.wait_until_reachable(error).await {
                    Err(ClientError::Refused(why)) => {
                        tracing::debug!("failed to get the invocation of {hook}: {why}, ignoring");
                        return Ok(String::new());
                    }
                    other => other?,
                },
            }
        }
    }

    /// Waits until the crawl has no open snapshot.
    pub async fn snapshots_done(&self) -> Result<(), ClientError> {
        loop {
            match self.proxy().snapshots_done(&self.token).await {
                Ok(()) => return Ok(()),
                Err(error) => self.wait_until_reachable(error).await?,
            }
        }
    }

    /// Waits until the orchestrator can be called again. Returns errors that a repeated call would
    /// not fix.
    async fn wait_until_reachable(&self, error: zbus::Error) -> Result<(), ClientError> {
        match self.address.explain(error) {
            ClientError::Unreachable { why, .. } => {
                tracing::info!("lost the connection to the orchestrator, waiting for it: {why}");
            }
            other => return Err(other),
        }
        if self.proxy().inner().connection().is_closed() {
            self.reconnect().await?;
        }
        self.wait_for_owner().await.map_err(|error| self.address.explain(error))
    }

    /// Waits until the name on the bus has an owner, without starting one: an administrator may have
    /// stopped the orchestrator.
    async fn wait_for_owner(&self) -> zbus::Result<()> {
        let bus = DBusProxy::new(self.proxy().inner().connection()).await?;
        let name = self.address.name.as_str();
        let mut changes = bus.receive_name_owner_changed_with_args(&[(0, name)]).await?;
        if bus.name_has_owner(name.try_into()?).await? {
            return Ok(());
        }
        while let Some(change) = changes.next().await {
            if change.args().is_ok_and(|args| args.new_owner().is_some()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reconnects after a restart of the bus. There is no event for that, so the delay between
    /// attempts doubles, up to five seconds.
    async fn reconnect(&self) -> Result<(), ClientError> {
        let mut delay = Duration::from_millis(50);
        let deadline = tokio::time::Instant::now() + BUS_GONE_MAX;
        loop {
            match self.address.worker().await {
                Ok(proxy) => {
                    *self.proxy.borrow_mut() = proxy;
                    return Ok(());
                }
                Err(error) if tokio::time::Instant::now() >= deadline => return Err(error),
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay = (delay * 2).min(Duration::from_secs(5));
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ClientError> {
    serde_json::from_str(text).map_err(|error| {
        ClientError::Refused(format!("failed to parse the orchestrator's answer: {error}"))
    })
}
