//! Calls to the orchestrator, with deadlines and repetition.

use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::wire::ManagerProxy;
use serde::de::DeserializeOwned;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use zbus::DBusError;
use zbus::proxy::{CacheProperties, Defaults};

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

/// How long a command waits for an answer.
#[derive(Clone, Copy)]
enum Patience {
    Until(Instant),
    /// As long as the orchestrator answers other calls.
    WhileAnswering,
    Forever,
}

impl Patience {
    fn usual() -> Patience {
        Patience::Until(Instant::now() + REPLY_TIMEOUT)
    }

    fn is_over(self) -> bool {
        matches!(self, Patience::Until(deadline) if deadline <= Instant::now())
    }
}

pub struct Server {
    address: Address,
    /// Name of the command that controls the unit of the orchestrator, and that unit.
    control: (&'static str, String),
    proxy: ManagerProxy<'static>,
    /// A call could not be written. The connection notices that it is closed only when it reads.
    is_broken: AtomicBool,
}

pub fn address(scope: &Scope) -> Address {
    Address::new(scope.user, scope.instance.as_deref())
}

/// Returns the systemctl(1) command for the service manager of the scope.
pub fn systemctl(scope: &Scope) -> &'static str {
    if scope.user { "systemctl --user" } else { "systemctl" }
}

impl Server {
    /// Connects to the bus; the first call starts the orchestrator if necessary.
    pub async fn reach(scope: &Scope) -> Result<Server, Failure> {
        let address = address(scope);
        let proxy = address.manager().await?;
        let control = (systemctl(scope), scope.orchestrator_unit());
        Ok(Server { address, control, proxy, is_broken: AtomicBool::new(false) })
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
                        control: self.control.clone(),
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

    /// The command with this verb for the unit of the orchestrator.
    fn command(&self, verb: &str) -> String {
        let (systemctl, unit) = &self.control;
        format!("{systemctl} {verb} {unit}")
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

    /// Returns the proxy of the interface of a feature.
    pub async fn feature<T>(&self) -> zbus::Result<T>
    where
        T: Defaults + From<zbus::Proxy<'static>>,
    {
        zbus::proxy::Builder::new(self.proxy.inner().connection())
            .destination(self.address.name.clone())
            .cache_properties(CacheProperties::No)
            .build()
            .await
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
        self.call_until(Patience::usual(), make).await
    }

    /// Same without a deadline, for a call that answers when something has ended.
    pub async fn wait_for<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        self.call_until(Patience::Forever, make).await
    }

    /// Same for a call whose work is done in pieces, such as cancelling a million pages, as long as
    /// the orchestrator answers other calls in between.
    pub async fn call_in_pieces<T, F>(&self, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        self.call_until(Patience::WhileAnswering, make).await
    }

    async fn call_until<T, F>(&self, patience: Patience, make: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        let connection = self.proxy.inner().connection();
        let mut lost = 0;
        loop {
            let refused = self.address.refused(connection);
            let Some(answer) = self.answer_of_one(patience, make(), refused).await? else {
                continue;
            };
            match answer {
                Err(failure) if failure.is_unreachable() => {
                    lost += 1;
                    if lost == ATTEMPTS || patience.is_over() {
                        return Err(failure);
                    }
                    self.address.start_again(connection).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Same for a command that waits already, and a call with `NO_AUTO_START`: an administrator may stop the
    /// orchestrator meanwhile. Waits until it runs again; `say` gets a line if that takes a while.
    pub async fn rejoin<T, F>(
        &self,
        make: impl Fn() -> F,
        say: impl Fn(String),
    ) -> Result<T, Failure>
    where
        F: Future<Output = zbus::Result<T>>,
    {
        let connection = self.proxy.inner().connection();
        let mut lost = 0;
        loop {
            let answer = self.answer_of_one(Patience::usual(), make(), pending());
            let Some(answer) = answer.await? else { continue };
            match answer {
                Err(failure) if failure.is_unreachable() && !self.is_cut_off() => {
                    lost = if self.is_up().await { lost + 1 } else { 0 };
                    if lost == ATTEMPTS {
                        return Err(failure);
                    }
                    let stopped = |unit: &str| {
                        let start = self.command("start");
                        say(format!("{unit} was stopped; to continue: {start}"));
                    };
                    self.address.until_back(connection, stopped).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Waits for the answer of one orchestrator. `None` if another one takes over before: the previous one may
    /// be frozen, and does not answer then.
    ///
    /// # Errors
    /// If the connection is lost, or that of `refused`, which speaks against every further attempt.
    async fn answer_of_one<T>(
        &self,
        patience: Patience,
        call: impl Future<Output = zbus::Result<T>>,
        refused: impl Future<Output = ClientError>,
    ) -> Result<Option<Result<T, Failure>>, Failure> {
        let replaced = self.replaced().await?;
        tokio::select! {
            biased;
            answer = self.answer(patience, call) => Ok(Some(answer)),
            () = replaced => Ok(None),
            refused = refused => Err(refused.into()),
        }
    }

    /// Waits for the answer to a call that must not be repeated.
    pub async fn call_once<T>(
        &self,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let answer = self.answer(Patience::usual(), call).await;
        answer.map_err(Failure::of_one_call)
    }

    /// Same for a call whose work is done in pieces, as long as the orchestrator answers other calls
    /// in between.
    pub async fn call_once_in_pieces<T>(
        &self,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let answer = self.answer(Patience::WhileAnswering, call).await;
        answer.map_err(Failure::of_one_call)
    }

    /// Waits for the answer to a call that queues `urls` URLs.
    pub async fn call_with_urls<T>(
        &self,
        urls: usize,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let more = Duration::from_secs((urls / URLS_PER_SECOND) as u64);
        let patience = Patience::Until(Instant::now() + REPLY_TIMEOUT + more);
        let answer = self.answer(patience, call).await;
        answer.map_err(Failure::of_one_call)
    }

    /// Waits for the answer to a call with `NO_AUTO_START`, which does not start the orchestrator.
    /// Does not repeat it.
    pub async fn ask_running<T>(
        &self,
        call: impl Future<Output = zbus::Result<Option<T>>>,
    ) -> Result<T, Failure> {
        let call = async { call.await?.ok_or(zbus::Error::InvalidReply) };
        self.answer(Patience::usual(), call).await
    }

    async fn answer<T>(
        &self,
        patience: Patience,
        call: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, Failure> {
        let begin = Instant::now();
        let answer = match patience {
            Patience::Until(deadline) => {
                tokio::time::timeout_at(deadline, call).await.map_err(|_| self.silence(begin))?
            }
            Patience::WhileAnswering => {
                while_answering(REPLY_TIMEOUT, call, || self.is_answering()).await?
            }
            Patience::Forever => call.await,
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) if is_bad_argument(&error) => {
                Err(Failure::usage(self.explain(error).to_string()))
            }
            Err(error) => Err(self.explain(error).into()),
        }
    }

    /// Waits for the answer to a short call.
    async fn is_answering(&self) -> Result<(), Failure> {
        let begin = Instant::now();
        let answer = tokio::time::timeout(REPLY_TIMEOUT, self.proxy.status()).await;
        answer.map_err(|_| self.silence(begin))?.map_err(|error| self.explain(error))?;
        Ok(())
    }

    fn silence(&self, begin: Instant) -> ClientError {
        ClientError::Unreachable {
            what: format!("the orchestrator ({}) does not answer", self.address.name),
            why: format!("no answer within {} s", begin.elapsed().as_secs()),
            hint: format!("see: {}", self.command("status")),
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

    /// Same for a document about one thing. `None` if there is no such thing, as after its deletion.
    pub async fn ask_if_known<T, F>(&self, make: impl Fn() -> F) -> Result<Option<T>, Failure>
    where
        T: DeserializeOwned,
        F: Future<Output = zbus::Result<String>>,
    {
        let make_if_known = || {
            let call = make();
            async {
                match call.await {
                    Err(error) if is_unknown_object(&error) => Ok(None),
                    answer => answer.map(Some),
                }
            }
        };
        let answer = self.call(make_if_known).await?;
        answer.as_deref().map(decode).transpose()
    }
}

/// Waits for `call` as long as `ask` succeeds, which is called after each `patience` without an
/// answer.
async fn while_answering<T>(
    patience: Duration,
    call: impl Future<Output = T>,
    ask: impl AsyncFn() -> Result<(), Failure>,
) -> Result<T, Failure> {
    tokio::pin!(call);
    loop {
        match tokio::time::timeout(patience, &mut call).await {
            Ok(answer) => return Ok(answer),
            Err(_) => ask().await?,
        }
    }
}

/// Returns whether the orchestrator refused the arguments of a call.
fn is_bad_argument(error: &zbus::Error) -> bool {
    has_name(error, "org.freedesktop.DBus.Error.InvalidArgs")
}

/// Returns whether the orchestrator does not know what a call is about.
fn is_unknown_object(error: &zbus::Error) -> bool {
    has_name(error, "org.freedesktop.DBus.Error.UnknownObject")
}

fn has_name(error: &zbus::Error, name: &str) -> bool {
    match error {
        zbus::Error::MethodError(found, ..) => found.as_str() == name,
        zbus::Error::FDO(error) => error.name().as_str() == name,
        _ => false,
    }
}

pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::failed(format!(
            "failed to parse the orchestrator's answer: {error}\nif its version differs from this command's, restart it: see archivist-orchestrator.service(8)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::sync::Notify;

    const PATIENCE: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn long_work_is_waited_for_while_others_are_answered() {
        let (done, asked) = (Notify::new(), Cell::new(0));
        let ask = async || {
            asked.set(asked.get() + 1);
            if asked.get() == 3 {
                done.notify_one();
            }
            Ok(())
        };
        let answer = while_answering(PATIENCE, done.notified(), ask).await;
        assert!(answer.is_ok());
        assert_eq!(asked.get(), 3);
    }

    #[tokio::test]
    async fn silent_orchestrator_is_not_waited_for() {
        let ask = async || Err(Failure::failed("silent".to_owned()));
        let answer = while_answering(PATIENCE, std::future::pending::<()>(), ask).await;
        assert!(answer.is_err());
    }
}
