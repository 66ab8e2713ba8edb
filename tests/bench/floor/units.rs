//! Units over the bus: StartTransientUnit, the signal of the end, StopUnit, and nothing else.

use super::{Answer, Hook, millis};
use archivist_core::unit::{UnitSpec, properties};
use archivist_shared::systemd::encode;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use zbus::connection::Builder;
use zbus::{Connection, Message, MessageStream, OwnedVariant};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const CHANGES: &str = "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',\
                       member='PropertiesChanged',arg0='org.freedesktop.systemd1.Service'";
const QUEUE: NonZeroUsize = NonZeroUsize::new(16 * 1024).expect("not zero");

/// Senders of the exit status of the main process to waiting tasks, by object path.
type Waiting = Rc<RefCell<HashMap<String, oneshot::Sender<i32>>>>;

struct Floor<'a> {
    hook: &'a Hook,
    connection: Connection,
    waiting: Waiting,
    /// Calls of StopUnit that have no answer yet. The next start does not wait for them.
    stops: RefCell<JoinSet<zbus::Result<Message>>>,
}

/// Runs `count` units, `at_once` at a time; the milliseconds that each took from the call until its end
/// was known.
pub fn run(hook: &Hook, count: usize, at_once: usize) -> Answer<Vec<f64>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let floor = Floor::connect(hook).await?;
        let one = |number| floor.one(number);
        let all = stream::iter(1..=count).map(one).buffer_unordered(at_once);
        let each = all.try_collect().await?;
        let stops = floor.stops.take().join_all().await;
        stops.into_iter().collect::<zbus::Result<Vec<_>>>()?;
        Ok(each)
    })
}

impl Floor<'_> {
    async fn connect(hook: &Hook) -> Answer<Floor<'_>> {
        let connection = Builder::system().max_queued(QUEUE).build().await?;
        let changes = MessageStream::for_match_rule(CHANGES, &connection, Some(QUEUE)).await?;
        let waiting = Waiting::default();
        tokio::task::spawn_local(drain(changes, waiting.clone()));
        let call = connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "Subscribe", &());
        call.await?;
        Ok(Floor { hook, connection, waiting, stops: RefCell::default() })
    }

    async fn one(&self, number: usize) -> Answer<f64> {
        let spec = self.hook.spec(number);
        let stdout = self.hook.prepare(&spec, number)?;
        let began = Instant::now();
        let (told, end) = oneshot::channel();
        self.waiting.borrow_mut().insert(path_of(&spec.name), told);
        self.start(&spec, stdout).await?;
        let status = end.await?;
        let took = millis(began.elapsed());
        self.stop(spec.name.clone());
        match status {
            0 => Ok(took),
            status => Err(format!("unit '{}' ended with status {status}", spec.name).into()),
        }
    }

    async fn start(&self, spec: &UnitSpec, stdout: OwnedFd) -> zbus::Result<()> {
        let properties = encode(&properties(spec), Some(stdout));
        let auxiliary: Vec<(String, Vec<(String, zbus::Variant<'_>)>)> = Vec::new();
        let body = (spec.name.as_str(), "fail", properties, auxiliary);
        let start = "StartTransientUnit";
        let call = self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), start, &body);
        call.await.map(drop)
    }

    /// A unit that has ended stays loaded until it is stopped.
    fn stop(&self, unit: String) {
        let connection = self.connection.clone();
        self.stops.borrow_mut().spawn(async move {
            let body = (unit, "replace");
            let call =
                connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "StopUnit", &body);
            call.await
        });
    }
}

async fn drain(mut changes: MessageStream, waiting: Waiting) {
    while let Some(Ok(message)) = changes.next().await {
        if let Some((path, status)) = end(&message)
            && let Some(told) = waiting.borrow_mut().remove(&path)
        {
            let _ = told.send(status);
        }
    }
}

/// The unit whose main process has ended, and its exit status.
fn end(message: &Message) -> Option<(String, i32)> {
    let path = message.header().path()?.to_string();
    let body = message.body();
    let (_, changed, _): (String, HashMap<String, OwnedVariant>, Vec<String>) =
        body.deserialize().ok()?;
    let number = |name: &str| i32::try_from(changed.get(name)?).ok();
    (number("ExecMainCode")? != 0).then_some((path, number("ExecMainStatus")?))
}

/// Where a unit is on the bus: what is neither a letter nor a digit is `_` and two hex digits.
fn path_of(unit: &str) -> String {
    let escaped = unit.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("_{byte:02x}")
        }
    });
    format!("{PATH}/unit/{}", escaped.collect::<String>())
}
