//! Calls to the orchestrator, with deadlines and repetition.

use crate::client::exit::Failure;
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::wire::ManagerProxy;
use archivist_shared::config::Scope;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Deadline of a call; most answers take milliseconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(90);

/// URLs that a slow and busy machine queues in a second; an idle one queues about 16,000.
const URLS_PER_SECOND: usize = 1000;

/// Time without a bus after which a command gives up.
const BUS_GONE_MAX: Duration = Duration::from_secs(60);

/// Delay between two attempts to reach the bus.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// Attempts of a call whose answer may get lost.
const ATTEMPTS: u32 = 5;

/// Connection to the orchestrator of a scope.
pub struct Server {
    address: Address,
    /// Command that shows why the orchestrator does not answer.
    status_command: String,
    proxy: ManagerProxy<'static>,
    /// A call could not be written. The connection notices that it is closed only when it reads.
    is_broken: AtomicBool,
}

pub fn address(scope: &Scope) -> Address {
    Address::new(scope.user, scope.instance.as_deref())
}

/// Returns the systemctl(1) command for the service manager of the scope.
pub fn systemctl(scope: &Scope) -> &'static str {
    if scope.user {
        "systemctl --user"
    } else {
        "systemctl"
    }
}

impl Server {
    /// Connects to the bus; the first call starts the orchestrator if necessary.
    pub async fn reach(scope: &Scope) -> Result<Server, Failure> {
        let address = address(scope);
        let proxy = address.manager().await?;
        let status_command = format!("{} status {}", systemctl(scope), scope.orchestrator_unit());
        Ok(Server {
            address,
            status_command,
            proxy,
            is_broken: AtomicBool::new(false),
        })
    }

    /// Connects again after the bus has closed the connection, as at its restart. There is no event
    /// for the return of the bus, so the delay between attempts doubles, up to [`RETRY_DELAY_MAX`].
    ///
    /// # Errors
    /// Those of the last attempt, after [`BUS_GONE_MAX`]; at once if the user has no permission.
    pub async fn reconnected(&self) -> Result<Server, Failure> {
        let deadline = Instant::now() + BUS_GONE_MAX;
        let mut delay = RETRY_DELAY_MIN;
        loop {
            match self.address.manager().await {
                Ok(proxy) => {
                    return Ok(Server {
                        address: self.address.clone(),
                        status_command: self.status_command.clone(),
                        proxy,
                        is_broken: AtomicBool::new(false),
                    });
                }
                Err(ClientError::Unreachable { .. }) if Instant::now() < deadline => {
                    tokio::time::sleep(delay).await;
                }
                Err(error) => return Err(error.into()),
            }
            delay = (delay * 2).min(RETRY_DELAY_MAX);
        }
    }

    /// Returns whether the bus has closed the connection.
    pub fn is_cut_off(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed) || self.proxy.inner().connection().is_closed()
    }

    fn explain(&self, error: zbus::Error) -> ClientError {
        if matches!(error, zbus::Error::InputOutput(_)) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        self.address.explain(error)
    }

    /// Returns a future that ends when another orchestrator takes over.
    pub async fn replaced(&self) -> Result<impl Future<Output = ()>, Failure> {
        let connection = self.proxy.inner().connection();
        let replaced = self.address.replaced(connection).await;
        Ok(replaced.map_err(|error| self.explain(error))?)
    }

    /// Returns whether an orchestrator has the bus name, without starting it.
    pub async fn is_up(&self) -> bool {
        let connection = self.proxy.inner().connection();
        self.address.has_owner(connection).await.unwrap_or(false)
    }

    /// Returns when an orchestrator has the bus name, without starting it, or when the bus has closed
    /// the connection.
    pub async fn until_up(&self) -> Result<(), Failure> {
        let connection = self.proxy.inner().connection();
        match self.address.until_up(connection).await {
            Err(_) if self.is_cut_off() => Ok(()),
            up => Ok(up.map_err(|error| self.explain(error))?),
        }
    }

    pub fn proxy(&self) -> &ManagerProxy<'static> {
        &self.proxy
    }

    /// Waits for the answer to a call that may be repeated, such as a query. Repeats it if the
    /// orchestrator restarts or another one takes over before the answer; the bus holds the call
    /// until the orchestrator is up.
    pub async fn call<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        self.call_until(Some(Instant::now() + REPLY_TIMEOUT), make)
            .await
    }

    /// Same without a deadline, for a call that answers when something has ended.
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
        let connection = self.proxy.inner().connection();
        let mut lost = 0;
        loop {
            let replaced = self
                .address
                .replaced(connection)
                .await
                .map_err(|error| self.explain(error))?;
            let answer = tokio::select! {
                biased;
                answer = self.answer(deadline, make()) => answer,
                // The previous orchestrator may be frozen, and does not answer after a takeover.
                () = replaced => continue,
                refused = self.address.refused(connection) => return Err(refused.into()),
            };
            match answer {
                Err(failure) if failure.is_unreachable() => {
                    lost += 1;
                    if lost == ATTEMPTS || deadline.is_some_and(|at| at <= Instant::now()) {
                        return Err(failure);
                    }
                    self.address.start_again(connection).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Waits for the answer to a call that must not be repeated.
    pub async fn call_once<T>(
        &self,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let answer = self
            .answer(Some(Instant::now() + REPLY_TIMEOUT), call)
            .await;
        answer.map_err(Failure::of_one_call)
    }

    /// Waits for the answer to a call that queues `urls` URLs.
    pub async fn call_with_urls<T>(
        &self,
        urls: usize,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let more = Duration::from_secs((urls / URLS_PER_SECOND) as u64);
        let deadline = Instant::now() + REPLY_TIMEOUT + more;
        let answer = self.answer(Some(deadline), call).await;
        answer.map_err(Failure::of_one_call)
    }

    /// Waits for the answer to a call with `NO_AUTO_START`, which does not start the orchestrator.
    /// Does not repeat it.
    pub async fn ask_running<T>(
        &self,
        call: impl Future<Output = zbus::Result<Option<T>>>,
    ) -> Result<T, Failure> {
        let call = async { call.await?.ok_or(zbus::Error::InvalidReply) };
        self.answer(Some(Instant::now() + REPLY_TIMEOUT), call)
            .await
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
                Err(Failure::usage(self.explain(error).to_string()))
            }
            Ok(Err(error)) => Err(self.explain(error).into()),
            Err(_) => Err(ClientError::Unreachable {
                what: format!("the orchestrator ({}) does not answer", self.address.name),
                why: format!("no answer within {} s", begin.elapsed().as_secs()),
                hint: format!("see: {}", self.status_command),
            }
            .into()),
        }
    }

    /// Waits for the answer to a call that may be repeated, and parses its JSON document.
    pub async fn ask<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        T: DeserializeOwned,
        F: Future<Output = zbus::Result<String>>,
    {
        decode(&self.call(make).await?)
    }
}

/// Returns whether the orchestrator refused the arguments of a call.
fn is_bad_argument(error: &zbus::Error) -> bool {
    match error {
        zbus::Error::MethodError(name, ..) => {
            name.as_str() == "org.freedesktop.DBus.Error.InvalidArgs"
        }
        zbus::Error::FDO(error) => matches!(**error, zbus::fdo::Error::InvalidArgs(_)),
        _ => false,
    }
}

/// Parses a JSON document of the orchestrator.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::failed(format!(
            "failed to parse the orchestrator's answer: {error}\nif its version differs from this command's, restart it: see archivist-orchestrator.service(8)"
        ))
    })
}
