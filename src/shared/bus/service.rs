//! Service side of the interfaces: every call becomes a value, and its handle carries the answer.

mod connection;
mod emit;
mod limits;
mod node;
mod worker;

use super::call::{Call, Refusal, Reply, Request, WatchCall, Which};
use super::callers::{Callers, Claim, Kind, User, process, user};
use super::list;
use super::subscribers::Subscribers;
use crate::bus::documents::report::{AddOptions, Added, Filter, Registration};
use crate::bus::documents::watches::HistoryFilter;
use archivist_core::model::search::SearchQuestion;
use archivist_core::model::{AnyId, CheckKind, Owner, cut};
use archivist_core::plan::RetentionRule;
pub use connection::{description, hung_up, offer, request_name};
pub use emit::emit;
use limits::{document, few, invalid, small_enough};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tokio::sync::mpsc;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedFd, fdo, interface};

/// Queue of the calls for the main loop.
pub type Calls = mpsc::UnboundedSender<Call>;

struct Manager(Calls, Callers, Subscribers);

impl From<Refusal> for fdo::Error {
    fn from(refusal: Refusal) -> Self {
        // The error may quote the caller's input, up to the size of a message.
        match refusal {
            Refusal::Invalid(text) => fdo::Error::InvalidArgs(cut(text)),
            Refusal::NoSuch(text) => fdo::Error::UnknownObject(cut(text)),
            Refusal::Denied(text) => fdo::Error::AccessDenied(cut(text)),
            Refusal::Failed(text) => fdo::Error::Failed(cut(text)),
        }
    }
}

/// Sends a call to the main loop and waits for its answer.
async fn ask<T>(calls: &Calls, make: impl FnOnce(Reply<T>) -> Call) -> fdo::Result<T> {
    let (reply, answer) = Reply::new();
    let leaving = || fdo::Error::NoReply("the orchestrator is stopping".to_owned());
    calls.send(make(reply)).map_err(|_| leaving())?;
    Ok(answer.await.map_err(|_| leaving())??)
}

async fn request<T>(calls: &Calls, make: impl FnOnce(Reply<T>) -> Request) -> fdo::Result<T> {
    ask(calls, |reply| Call::Request(make(reply))).await
}

async fn watches(calls: &Calls, call: WatchCall) -> fdo::Result<String> {
    request(calls, |reply| Request::Watches { call, reply }).await.and_then(small_enough)
}

fn parsed_question(text: &str) -> fdo::Result<SearchQuestion> {
    let question: SearchQuestion = document(text)?;
    if !question.is_asked() {
        let why = "the question has neither words nor conditions".to_owned();
        return Err(fdo::Error::InvalidArgs(why));
    }
    Ok(question)
}

async fn retry(calls: &Calls, id: Option<Owner>, which: Which, user: u32) -> fdo::Result<u32> {
    let make = |reply| Request::Retry { id, which, user, so_far: None, reply };
    request(calls, make).await
}

fn owner(id: &str) -> fdo::Result<Owner> {
    id.parse().map_err(invalid)
}

/// Returns the user id of the caller, as the bus reports it.
fn known(user: User) -> fdo::Result<u32> {
    let unknown = || fdo::Error::AccessDenied("failed to find the user of this call".to_owned());
    user.ok_or_else(unknown)
}

impl Manager {
    /// Counts a resource of the orchestrator that this call holds, for its user.
    async fn claim(
        &self,
        connection: &Connection,
        header: &Header<'_>,
        kind: Kind,
    ) -> fdo::Result<(User, Claim)> {
        let user = user(connection, header).await?;
        Ok((user, self.1.claim(user, kind)?))
    }

    async fn add_for(
        &self,
        user: User,
        urls: OwnedFd,
        options: &str,
        joins: bool,
    ) -> fdo::Result<String> {
        let options: AddOptions = document(options)?;
        let owner = known(user)?;
        let places = self.1.places(user);
        let list = list::read(urls.into(), &places, list::READ_TIME).await;
        // Its slots are free again when the pages are queued.
        let (lines, _places) = list.map_err(invalid)?.into_parts();
        let lines = Arc::new(lines);
        request(&self.0, |reply| Request::Add {
            lines,
            options,
            user: owner,
            joins,
            so_far: None,
            reply,
        })
        .await
    }

    async fn set_pinned(
        &self,
        id: &str,
        pinned: bool,
        dry_run: bool,
        user: u32,
    ) -> fdo::Result<u32> {
        let id = owner(id)?;
        let make = |reply| Request::Pin { id, pinned, dry_run, user, reply };
        request(&self.0, make).await
    }

    async fn hold_for(&self, crawl: &str, cancel: bool, claim: Claim) -> fdo::Result<OwnedFd> {
        let crawl = crawl.parse().map_err(invalid)?;
        let make = |reply| Request::Hold { crawl, cancel, claim, reply };
        Ok(request(&self.0, make).await?.into())
    }
}

#[interface(name = "org.archivist1.Manager")]
impl Manager {
    async fn add(
        &self,
        urls: OwnedFd,
        options: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (user, _claim) = self.claim(connection, &header, Kind::Call).await?;
        self.add_for(user, urls, options, false).await
    }

    async fn install(
        &self,
        names: Vec<String>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        few(&names)?;
        let user = known(user(connection, &header).await?)?;
        request(&self.0, |reply| Request::Install { names, user, reply }).await
    }

    async fn cancel(&self, id: &str) -> fdo::Result<()> {
        match id.parse().map_err(invalid)? {
            AnyId::Owner(id) => request(&self.0, |reply| Request::Cancel { id, reply }).await,
            AnyId::Run(id) => request(&self.0, |reply| Request::CancelRun { id, reply }).await,
        }
    }

    async fn delete(
        &self,
        ids: Vec<String>,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        few(&ids)?;
        let ids: Result<_, _> = ids.iter().map(|id| id.parse().map_err(invalid)).collect();
        let ids = ids?;
        let user = known(user(connection, &header).await?)?;
        let make = |reply| Request::Delete { ids, dry_run, user, reply };
        request(&self.0, make).await
    }

    async fn expired(&self, rules: Vec<String>, after: i64) -> fdo::Result<String> {
        few(&rules)?;
        let mut read = Vec::new();
        for text in &rules {
            let rule = RetentionRule::parse(text);
            let wrong = |allowed| invalid(format!("bad rule '{text}', expected {allowed}"));
            rule.map_err(wrong)?.add_to(&mut read);
        }
        let make = |reply| Request::Expired { rules: read, after, reply };
        request(&self.0, make).await
    }

    async fn pin(
        &self,
        id: &str,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let user = known(user(connection, &header).await?)?;
        self.set_pinned(id, true, dry_run, user).await
    }

    async fn unpin(
        &self,
        id: &str,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let user = known(user(connection, &header).await?)?;
        self.set_pinned(id, false, dry_run, user).await
    }

    async fn search(
        &self,
        question: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let question = parsed_question(question)?;
        let (_, _claim) = self.claim(connection, &header, Kind::Call).await?;
        request(&self.0, |reply| Request::Search { question, reply }).await
    }

    async fn rebuild_search(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let user = known(user(connection, &header).await?)?;
        request(&self.0, |reply| Request::RebuildSearch { user, reply }).await
    }

    async fn confirm_retention(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let user = known(user(connection, &header).await?)?;
        request(&self.0, |reply| Request::ConfirmRetention { user, reply }).await
    }

    async fn unknown_settings(&self, names: Vec<String>) -> fdo::Result<String> {
        let make = |reply| Request::UnknownSettings { names, reply };
        request(&self.0, make).await
    }

    async fn await_units(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let id = id.parse().map_err(invalid)?;
        let (_, _claim) = self.claim(connection, &header, Kind::Call).await?;
        request(&self.0, |reply| Request::AwaitUnits { id, reply }).await
    }

    async fn fetch(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let Owner::Snapshot(id) = owner(id)? else {
            return Err(fdo::Error::InvalidArgs(format!("'{id}' is not a snapshot")));
        };
        let (_, _claim) = self.claim(connection, &header, Kind::Call).await?;
        request(&self.0, |reply| Request::Fetch { id, reply }).await
    }

    async fn test_store(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (user, _claim) = self.claim(connection, &header, Kind::Call).await?;
        let user = known(user)?;
        request(&self.0, |reply| Request::TestStore { user, reply }).await
    }

    async fn abort(&self, crawl: &str) -> fdo::Result<()> {
        let Owner::Crawl(id) = owner(crawl)? else {
            return Err(fdo::Error::InvalidArgs(format!(
                "'{crawl}' is not a crawl: cancel a snapshot with Cancel"
            )));
        };
        request(&self.0, |reply| Request::Abort { id, reply }).await
    }

    /// Pauses a crawl or snapshot, and freezes its hooks.
    async fn pause(&self, id: &str) -> fdo::Result<()> {
        let id = owner(id)?;
        request(&self.0, |reply| Request::Pause { id, reply }).await
    }

    /// Continues a paused crawl or snapshot.
    async fn resume(&self, id: &str) -> fdo::Result<()> {
        let id = owner(id)?;
        request(&self.0, |reply| Request::Resume { id, reply }).await
    }

    async fn amend(
        &self,
        id: &str,
        config: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let id = owner(id)?;
        let config = document(config)?;
        let user = known(user(connection, &header).await?)?;
        let make = |reply| Request::Amend { id, config, user, reply };
        request(&self.0, make).await
    }

    async fn retry(
        &self,
        id: &str,
        hook: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = match id {
            "" => None,
            id => Some(owner(id)?),
        };
        let which = match hook {
            "" => Which::Failed,
            hook => Which::Hook(hook.to_owned()),
        };
        let user = known(user(connection, &header).await?)?;
        retry(&self.0, id, which, user).await
    }

    async fn retry_all(
        &self,
        id: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = owner(id)?;
        let user = known(user(connection, &header).await?)?;
        retry(&self.0, Some(id), Which::All, user).await
    }

    async fn update(
        &self,
        id: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = match id {
            "" => None,
            id => Some(owner(id)?),
        };
        let user = known(user(connection, &header).await?)?;
        retry(&self.0, id, Which::Missing, user).await
    }

    async fn status(&self) -> fdo::Result<String> {
        request(&self.0, |reply| Request::Status { reply }).await
    }

    async fn metrics(&self) -> fdo::Result<String> {
        request(&self.0, |reply| Request::Metrics { reply }).await
    }

    async fn list(&self, what: &str, filter: &str) -> fdo::Result<String> {
        let filter: Box<Filter> = document(filter)?;
        let what = what.to_owned();
        request(&self.0, |reply| Request::List { what, filter, reply }).await.and_then(small_enough)
    }

    async fn show(&self, id: &str) -> fdo::Result<String> {
        let shown = match id.parse().map_err(invalid)? {
            AnyId::Owner(id) => request(&self.0, |reply| Request::Show { id, reply }).await,
            AnyId::Run(id) => request(&self.0, |reply| Request::ShowRun { id, reply }).await,
        };
        shown.and_then(small_enough)
    }

    async fn why(&self, id: &str) -> fdo::Result<String> {
        // Text that is not an id is the name of a watch.
        let Ok(id) = id.parse::<AnyId>() else {
            return watches(&self.0, WatchCall::Why(id.to_owned())).await;
        };
        request(&self.0, |reply| Request::Why { id, reply }).await
    }

    async fn plugins(&self) -> fdo::Result<String> {
        request(&self.0, |reply| Request::Plugins { reply }).await
    }

    async fn watch(
        &self,
        crawl: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let crawl = crawl.parse().map_err(invalid)?;
        let (_, claim) = self.claim(connection, &header, Kind::Descriptor).await?;
        let make = |reply| Request::Watch { crawl, claim, reply };
        Ok(request(&self.0, make).await?.into())
    }

    async fn watch_status(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let (_, claim) = self.claim(connection, &header, Kind::Descriptor).await?;
        let make = |reply| Request::WatchStatus { claim, reply };
        Ok(request(&self.0, make).await?.into())
    }

    async fn run(
        &self,
        urls: OwnedFd,
        options: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<(String, OwnedFd)> {
        let (user, claim) = self.claim(connection, &header, Kind::Descriptor).await?;
        let _call = self.1.claim(user, Kind::Call)?;
        let answer = self.add_for(user, urls, options, true).await?;
        let added: Added = serde_json::from_str(&answer).map_err(invalid)?;
        // Its crawl belongs to another caller: nothing is held.
        if added.accepted == 0 && added.known > 0 {
            let (closed, _) = UnixStream::pair().map_err(|error| {
                fdo::Error::Failed(format!("failed to create a socket pair: {error}"))
            })?;
            return Ok((answer, std::os::fd::OwnedFd::from(closed).into()));
        }
        // If the caller is gone by now, the descriptor closes and the crawl is cancelled, unless another
        // caller holds it.
        let hold = self.hold_for(&added.crawl.to_string(), true, claim).await?;
        Ok((answer, hold))
    }

    async fn hold(
        &self,
        crawl: &str,
        cancel: bool,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let (_, claim) = self.claim(connection, &header, Kind::Descriptor).await?;
        self.hold_for(crawl, cancel, claim).await
    }

    async fn register(
        &self,
        command: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let command = document::<Registration>(command)?.bounded();
        let (user, claim) = self.claim(connection, &header, Kind::Descriptor).await?;
        let pid = process(connection, &header).await?;
        let make = |reply| Request::Register { command, pid, user, claim, reply };
        Ok(request(&self.0, make).await?.into())
    }

    async fn interrupt(&self, id: &str) -> fdo::Result<String> {
        let id = owner(id)?;
        request(&self.0, |reply| Request::Interrupt { id, reply }).await
    }

    async fn proceed(&self, crawl: &str, again: bool) -> fdo::Result<u32> {
        let crawl = crawl.parse().map_err(invalid)?;
        let make = |reply| Request::Proceed { crawl, again, reply };
        request(&self.0, make).await
    }

    async fn draft(
        &self,
        options: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        let options: AddOptions = document(options)?;
        let user = known(user(connection, &header).await?)?;
        let make = |reply| Request::Draft { options, user, reply };
        request(&self.0, make).await
    }

    async fn check(&self, watch: &str, kinds: Vec<String>) -> fdo::Result<String> {
        let kind = |text: &String| {
            CheckKind::parse(text)
                .filter(|kind| *kind != CheckKind::Alert)
                .ok_or_else(|| invalid(format!("'{text}' is not a kind of check")))
        };
        few(&kinds)?;
        let kinds = kinds.iter().map(kind).collect::<fdo::Result<_>>()?;
        let watch = watch.to_owned();
        watches(&self.0, WatchCall::Check { watch, kinds }).await
    }

    async fn await_check(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let id = id.parse().map_err(invalid)?;
        let (_, _claim) = self.claim(connection, &header, Kind::Call).await?;
        watches(&self.0, WatchCall::Await(id)).await
    }

    async fn watches(&self, name: &str) -> fdo::Result<String> {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        watches(&self.0, WatchCall::List(name)).await
    }

    async fn history(&self, watch: &str, filter: &str) -> fdo::Result<String> {
        let filter: HistoryFilter = document(filter)?;
        let watch = watch.to_owned();
        watches(&self.0, WatchCall::History { watch, filter }).await
    }

    async fn reload(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let user = known(user(connection, &header).await?)?;
        request(&self.0, |reply| Request::Reload { user, reply }).await
    }

    async fn subscribe(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let (_, claim) = self.claim(connection, &header, Kind::Subscription).await?;
        self.2.add(connection, &sender(&header), claim).await
    }

    fn unsubscribe(&self, #[zbus(header)] header: Header<'_>) {
        self.2.remove(&sender(&header));
    }

    #[zbus(signal)]
    async fn crawl_added(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_started(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_sealed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_cancelled(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_changed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshots_added(
        to: &SignalEmitter<'_>,
        crawl: &str,
        document: &str,
    ) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_started(to: &SignalEmitter<'_>, id: &str, document: &str)
    -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_sealed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_cancelled(
        to: &SignalEmitter<'_>,
        id: &str,
        document: &str,
    ) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_changed(to: &SignalEmitter<'_>, id: &str, document: &str)
    -> zbus::Result<()>;
    #[zbus(signal)]
    async fn idle(to: &SignalEmitter<'_>) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn stopping(to: &SignalEmitter<'_>) -> zbus::Result<()>;
}

/// Returns the unique name of the caller; empty on a connection without a bus.
fn sender(header: &Header<'_>) -> String {
    header.sender().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests;
