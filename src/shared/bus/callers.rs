//! Limits on what the calls of one user hold at a time, so that they do not delay the calls of
//! other users.

use archivist_core::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use zbus::Connection;
use zbus::fdo::{self, DBusProxy};
use zbus::message::Header;

/// Lists that are read at a time for one user; further lists wait.
const LISTS: usize = 4;
/// Large lists in memory, for one user and for all users.
const LARGE_OF_ONE: usize = 1;
const LARGE: usize = 2;

/// Resource that is counted by user. The limits allow many concurrent commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Calls that wait: for a list, or for the end of a check.
    Call,
    /// Descriptors of which the orchestrator holds the other end: followed crawls, and commands in
    /// the foreground with their crawls.
    Descriptor,
    /// Clients that subscribed to signals. Each requires a match rule of the orchestrator, of which
    /// the bus allows 512.
    Subscription,
}

impl Kind {
    fn most(self) -> usize {
        match self {
            Kind::Call => 256,
            Kind::Descriptor => 512,
            Kind::Subscription => 64,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Kind::Call => "pending calls",
            Kind::Descriptor => "descriptors of crawls that are followed or held, and of commands",
            Kind::Subscription => "subscriptions",
        }
    }
}

/// User id; `None` on a connection without a bus, which reports no users.
pub type User = Option<u32>;

pub async fn user(connection: &Connection, header: &Header<'_>) -> fdo::Result<User> {
    let Some(sender) = header.sender().filter(|_| connection.is_bus()) else {
        return Ok(None);
    };
    let bus = DBusProxy::new(connection).await?;
    let user = bus.get_connection_unix_user(sender.clone().into()).await?;
    Ok(Some(user))
}

/// Refuses this call unless `may` admits the user id of its sender. It does not rely on the policy of the
/// bus, a file that an administrator may extend. A connection without a bus reports no users, and has no
/// policy.
///
/// # Errors
/// AccessDenied with `why`, or if the bus does not name the user.
pub async fn require(
    connection: &Connection,
    header: &Header<'_>,
    may: impl FnOnce(u32) -> bool,
    why: &str,
) -> fdo::Result<()> {
    match user(connection, header).await? {
        Some(user) if !may(user) => Err(fdo::Error::AccessDenied(why.to_owned())),
        _ => Ok(()),
    }
}

/// Process of the sender of this call; `None` on a connection without a bus.
pub async fn process(connection: &Connection, header: &Header<'_>) -> fdo::Result<Option<u32>> {
    let Some(sender) = header.sender().filter(|_| connection.is_bus()) else {
        return Ok(None);
    };
    let bus = DBusProxy::new(connection).await?;
    let pid = bus.get_connection_unix_process_id(sender.clone().into());
    Ok(Some(pid.await?))
}

type Counts = Mutex<HashMap<(User, Kind), usize>>;

/// A counted resource, released when all clones are dropped.
#[derive(Clone, Default)]
pub struct Claim(
    #[expect(dead_code, reason = "what matters is when it is dropped")] Option<Arc<Counted>>,
);

struct Counted {
    counts: Arc<Counts>,
    key: (User, Kind),
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[derive(Clone)]
pub struct Places {
    /// Concurrent lists.
    pub lists: Arc<Semaphore>,
    /// Concurrent lists larger than one part.
    pub large: Arc<Semaphore>,
    pub large_of_all: Arc<Semaphore>,
}

#[derive(Clone)]
pub struct Callers {
    counts: Arc<Counts>,
    places: Arc<Mutex<HashMap<User, Places>>>,
    large: Arc<Semaphore>,
}

impl Default for Callers {
    fn default() -> Self {
        Callers {
            counts: Arc::default(),
            places: Arc::default(),
            large: Arc::new(Semaphore::new(LARGE)),
        }
    }
}

impl Callers {
    /// Counts a resource for `user`, or refuses it at the limit.
    pub fn claim(&self, user: User, kind: Kind) -> fdo::Result<Claim> {
        let key = (user, kind);
        let mut counts = lock(&self.counts);
        let count = counts.entry(key).or_default();
        if *count >= kind.most() {
            let who = user.map_or_else(|| "this connection".to_owned(), |id| format!("user {id}"));
            return Err(fdo::Error::LimitsExceeded(format!(
                "{who} has reached the limit of {} {} at a time",
                kind.most(),
                kind.what()
            )));
        }
        *count += 1;
        drop(counts);
        let counts = self.counts.clone();
        Ok(Claim(Some(Arc::new(Counted { counts, key }))))
    }

    /// Returns the slots of a user, shared by all of the user's calls.
    pub fn places(&self, user: User) -> Places {
        let mut places = lock(&self.places);
        let own = places.entry(user).or_insert_with(|| Places {
            lists: Arc::new(Semaphore::new(LISTS)),
            large: Arc::new(Semaphore::new(LARGE_OF_ONE)),
            large_of_all: self.large.clone(),
        });
        own.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_a_limit_and_does_not_block_another() {
        let callers = Callers::default();
        let claim = |user| callers.claim(Some(user), Kind::Descriptor);
        let held: Vec<Claim> = (0..Kind::Descriptor.most()).map(|_| claim(1).unwrap()).collect();
        let refused = claim(1).err().unwrap().to_string();
        assert!(refused.contains("user 1 has reached the limit of 512 descriptors"), "{refused}");
        assert!(claim(2).is_ok() && callers.claim(Some(1), Kind::Call).is_ok());
        let copy = held[0].clone();
        drop(held);
        assert_eq!(callers.counts.lock().unwrap()[&(Some(1), Kind::Descriptor)], 1);
        drop(copy);
        assert!(callers.counts.lock().unwrap().is_empty(), "users without resources are forgotten");
        assert!(claim(1).is_ok());
    }
}
