//! One conversation with the orchestrator.

use crate::client::exit::Failure;
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::wire::ManagerProxy;
use archivist_shared::config::Scope;
use futures_util::future::{Either, select};
use serde::de::DeserializeOwned;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

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
    if scope.user {
        "systemctl --user"
    } else {
        "systemctl"
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

    /// Waits for the answer to a call that may be made twice, as that of one that only asks: it is
    /// made again when the orchestrator is restarted or another one takes over before the answer.
    /// The bus keeps the call until somebody is there.
    pub async fn call<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        self.call_until(Some(Instant::now() + PATIENCE), make).await
    }

    /// The same without limit, for an answer that comes when something is over.
    pub async fn wait_for<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        self.call_until(None, make).await
    }

    async fn call_until<T, F>(
        &self,
        deadline: Option<Instant>,
        make: impl Fn() -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        let mut lost = 0;
        loop {
            let replaced = self.address.replaced(self.proxy.inner().connection());
            let replaced = replaced.await.map_err(|e| self.address.explain(e))?;
            match select(pin!(self.answer(deadline, make())), pin!(replaced)).await {
                Either::Left((Err(failure), _)) if failure.is_unreachable() => {
                    lost += 1;
                    if lost == ATTEMPTS || deadline.is_some_and(|at| at <= Instant::now()) {
                        return Err(failure);
                    }
                }
                Either::Left((answer, _)) => return answer,
                // The one that was asked may be frozen, and answers no more if it is not.
                Either::Right(_) => {}
            }
        }
    }

    /// Waits for the answer to a call that is not made twice.
    pub async fn call_once<T>(
        &self,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let answer = self.answer(Some(Instant::now() + PATIENCE), call).await;
        answer.map_err(Failure::of_one_call)
    }

    /// Waits for the answer to a call that queues so many URLs.
    pub async fn call_with_urls<T>(
        &self,
        urls: usize,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let more = Duration::from_secs((urls / URLS_PER_SECOND) as u64);
        let deadline = Instant::now() + PATIENCE + more;
        let answer = self.answer(Some(deadline), call).await;
        answer.map_err(Failure::of_one_call)
    }

    async fn answer<T>(
        &self,
        deadline: Option<Instant>,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let begin = Instant::now();
        let answer = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, call).await,
            None => Ok(call.await),
        };
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if is_bad_argument(&error) => {
                Err(Failure::usage(self.address.explain(error).to_string()))
            }
            Ok(Err(error)) => Err(self.address.explain(error).into()),
            Err(_) => Err(ClientError::Unreachable {
                what: format!("the orchestrator ({}) does not answer", self.address.name),
                why: format!("nothing came within {} s", begin.elapsed().as_secs()),
                hint: format!("see: {}", self.look_at),
            }
            .into()),
        }
    }

    /// Waits for the answer to a call that may be made twice, and reads the document that it is.
    pub async fn ask<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        T: DeserializeOwned,
        F: Future<Output = zbus::Result<String>>,
    {
        decode(&self.call(make).await?)
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
