//! One conversation with the orchestrator.

use super::exit::Failure;
use crate::bus::client::{Address, ClientError};
use crate::bus::wire::ManagerProxy;
use crate::config::Scope;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// How long an answer may take; most take milliseconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// How many URLs are queued in a second on a machine that is slow and busy with other things; an idle one takes some 16,000.
const URLS_PER_SECOND: usize = 1000;

/// How often a call is made whose answer may get lost.
const ATTEMPTS: u32 = 5;

/// The orchestrator of a scope.
pub struct Server {
    address: Address,
    /// What shows more when it does not answer.
    look_at: String,
    proxy: ManagerProxy<'static>,
}

pub fn address(scope: &Scope) -> Address {
    Address::new(scope.user, scope.instance.as_deref())
}

/// The command that talks to the scope's service manager.
pub fn systemctl(scope: &Scope) -> &'static str {
    match scope.user {
        true => "systemctl --user",
        false => "systemctl",
    }
}

impl Server {
    /// Connects to the bus; the first call starts the orchestrator if it does not run.
    pub async fn reach(scope: &Scope) -> Result<Server, Failure> {
        let address = address(scope);
        let proxy = address.manager().await?;
        let look_at = format!("{} status {}", systemctl(scope), scope.orchestrator_unit());
        Ok(Server {
            address,
            look_at,
            proxy,
        })
    }

    pub fn proxy(&self) -> &ManagerProxy<'static> {
        &self.proxy
    }

    /// Waits for the answer to a call.
    pub async fn call<T>(&self, call: impl Future<Output = zbus::Result<T>>) -> Result<T, Failure> {
        self.call_within(PATIENCE, call).await
    }

    /// Waits for the answer to a call that queues so many URLs.
    pub async fn call_with_urls<T>(
        &self,
        urls: usize,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let more = Duration::from_secs((urls / URLS_PER_SECOND) as u64);
        self.call_within(PATIENCE + more, call).await
    }

    async fn call_within<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(patience, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if is_bad_argument(&error) => {
                Err(Failure::usage(self.address.explain(error).to_string()))
            }
            Ok(Err(error)) => Err(self.address.explain(error).into()),
            Err(_) => Err(ClientError::Unreachable {
                what: format!("the orchestrator ({}) does not answer", self.address.name),
                why: format!("nothing came within {} s", patience.as_secs()),
                hint: format!("see: {}", self.look_at),
            }
            .into()),
        }
    }

    /// Waits without limit for an answer that comes when something is over. The bus keeps the call
    /// that is made again after the orchestrator was restarted.
    pub async fn wait_for<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        for _ in 1..ATTEMPTS {
            match make().await {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let failure = Failure::from(self.address.explain(error));
                    if !failure.is_unreachable() {
                        return Err(failure);
                    }
                }
            }
        }
        self.call(make()).await
    }

    /// The same for a call that may be made twice: its answer is lost when the orchestrator that has
    /// it is restarted or another one takes over. The bus keeps the next one until somebody is there.
    pub async fn call_again<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        let begin = Instant::now();
        for _ in 1..ATTEMPTS {
            match self.call(make()).await {
                Err(failure) if failure.is_unreachable() && begin.elapsed() < PATIENCE => {}
                other => return other,
            }
        }
        self.call(make()).await
    }

    /// Waits for the answer to a call and reads the document that it is.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        call: impl Future<Output = zbus::Result<String>>,
    ) -> Result<T, Failure> {
        decode(&self.call(call).await?)
    }

    /// The same for a call that may be made twice.
    pub async fn ask_again<T, C>(&self, call: impl Fn() -> C) -> Result<T, Failure>
    where
        T: DeserializeOwned,
        C: Future<Output = zbus::Result<String>>,
    {
        decode(&self.call_again(call).await?)
    }
}

/// The orchestrator says so when what it was asked makes no sense.
fn is_bad_argument(error: &zbus::Error) -> bool {
    match error {
        zbus::Error::MethodError(name, ..) => {
            name.as_str() == "org.freedesktop.DBus.Error.InvalidArgs"
        }
        zbus::Error::FDO(error) => matches!(**error, zbus::fdo::Error::InvalidArgs(_)),
        _ => false,
    }
}

/// Reads a document of the orchestrator.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::failed(format!(
            "cannot read the orchestrator's answer: {error}\nis it of another version? then restart it: see archivist-orchestrator.service(8)"
        ))
    })
}
