//! A simulated service manager at the other end of a socket pair: `org.freedesktop.systemd1` with a
//! manager, unit objects, jobs and signals. It answers one call for each `serve`, so that tests can
//! choose any order of signals and answers.

use archivist_core::unit::Names;
use archivist_shared::systemd::{HintQueue, Manager};
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, Guid, Message, MessageStream, OwnedObjectPath, OwnedVariant, Variant};

pub const ROOT: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const SERVICE: &str = "org.freedesktop.systemd1.Service";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// A test that waits so long has failed.
const DEADLINE: Duration = Duration::from_secs(10);
/// After this time without a call, the client waits for answers.
const QUIET: Duration = Duration::from_millis(50);

/// Waits for something that has to happen.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(DEADLINE, what).await;
    waited.expect("it happens before the deadline")
}

/// A unit as it is loaded. The default is a service that runs.
#[derive(Clone, Debug)]
pub struct Unit {
    pub active_state: &'static str,
    pub result: &'static str,
    pub code: i32,
    pub status: i32,
    pub cpu_nsec: u64,
    pub invocation: u8,
    /// When its main process ended, and when it ceased to be active, in microseconds.
    pub exited: u64,
    pub left_active: u64,
    /// Type of its job; empty without one.
    pub job: &'static str,
}

impl Default for Unit {
    fn default() -> Self {
        Unit {
            active_state: "active",
            result: "success",
            code: 0,
            status: 0,
            cpu_nsec: u64::MAX,
            invocation: 7,
            exited: 0,
            left_active: 0,
            job: "",
        }
    }
}

/// Arguments of a call of StartTransientUnit.
pub struct Transient {
    pub name: String,
    pub mode: String,
    pub properties: BTreeMap<String, OwnedVariant>,
}

impl Transient {
    pub fn of(call: &Message) -> Transient {
        type Aux = Vec<(String, Vec<(String, OwnedVariant)>)>;
        let body = call.body();
        let (name, mode, properties, _): (String, String, Vec<(String, OwnedVariant)>, Aux) =
            body.deserialize().unwrap();
        let properties = properties.into_iter().collect();
        Transient { name, mode, properties }
    }

    pub fn take<T: TryFrom<OwnedVariant>>(&mut self, name: &str) -> T {
        let value = self.properties.remove(name);
        let value = value.unwrap_or_else(|| panic!("no property {name}"));
        T::try_from(value).unwrap_or_else(|_| panic!("{name} has another type"))
    }

    pub fn descriptor(&mut self, name: &str) -> OwnedFd {
        let fd: zbus::Fd<'static> = self.take(name);
        fd.as_fd().try_clone_to_owned().unwrap()
    }
}

pub struct Fake {
    connection: Connection,
    calls: MessageStream,
    pub units: BTreeMap<String, Unit>,
    /// How the next start is refused: error name and text.
    pub refuse: Option<(&'static str, &'static str)>,
    pub system_state: &'static str,
    jobs: u32,
    /// Members of all calls, in the order in which they came.
    pub heard: Vec<String>,
}

impl Fake {
    /// A manager of ours that is connected to a fake one, with its hints.
    pub async fn connect() -> (Fake, Manager, HintQueue) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let server = async {
            let builder = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
            let connection = builder.build().await.unwrap();
            let calls = MessageStream::from(&connection);
            let mut fake = Fake {
                connection,
                calls,
                units: BTreeMap::new(),
                refuse: None,
                system_state: "running",
                jobs: 0,
                heard: Vec::new(),
            };
            fake.serve(1).await;
            fake
        };
        let hints = HintQueue::default();
        let builder = Builder::unix_stream(ours).p2p();
        let client = Manager::over(builder, Names::new("archivist"), hints.clone());
        let (fake, manager) = soon(async { tokio::join!(server, client) }).await;
        (fake, manager.unwrap(), hints)
    }

    /// The next call, unanswered.
    pub async fn take(&mut self) -> Message {
        loop {
            let message = soon(self.calls.next()).await.expect("a call").unwrap();
            if message.message_type() == Type::MethodCall {
                let member = message.header().member().unwrap().to_string();
                self.heard.push(member);
                return message;
            }
        }
    }

    /// The calls that come before it is quiet for a while, unanswered.
    pub async fn take_all(&mut self) -> Vec<Message> {
        let mut all = vec![self.take().await];
        while let Ok(call) = tokio::time::timeout(QUIET, self.take()).await {
            all.push(call);
        }
        all
    }

    /// Receives and answers this number of calls.
    pub async fn serve(&mut self, calls: usize) {
        for _ in 0..calls {
            let call = self.take().await;
            self.answer(&call).await;
        }
    }

    /// Answers a call as systemd does.
    pub async fn answer(&mut self, call: &Message) {
        let header = call.header();
        let member = header.member().unwrap().to_string();
        let text = || call.body().deserialize::<String>().unwrap();
        let two = || call.body().deserialize::<(String, String)>().unwrap();
        match member.as_str() {
            "Subscribe" => self.reply(call, &()).await,
            "StartTransientUnit" => self.start(call).await,
            "StopUnit" => {
                let unit = two().0;
                let failed = |unit: &Unit| unit.active_state == "failed";
                if !self.units.contains_key(&unit) {
                    return self.no_such_unit(call, &unit).await;
                }
                if !failed(&self.units[&unit]) {
                    self.units.remove(&unit);
                }
                self.jobs += 1;
                let job = job_path(self.jobs);
                self.reply(call, &job).await;
            }
            "ResetFailedUnit" => match text() {
                unit if self.units.contains_key(&unit) => {
                    self.units.retain(|name, u| *name != unit || u.active_state != "failed");
                    self.reply(call, &()).await;
                }
                unit => self.no_such_unit(call, &unit).await,
            },
            "KillUnit" => {
                let (unit, _, _): (String, String, i32) = call.body().deserialize().unwrap();
                match self.units.get(&unit) {
                    None => self.no_such_unit(call, &unit).await,
                    Some(state) if state.code != 0 => {
                        let name = "org.freedesktop.systemd1.NoSuchProcess";
                        self.refuse(call, name, "No such process").await;
                    }
                    Some(_) => self.reply(call, &()).await,
                }
            }
            "FreezeUnit" | "ThawUnit" => match self.units.get(&text()) {
                None => self.no_such_unit(call, &text()).await,
                Some(unit) if unit.active_state != "active" => {
                    let name = "org.freedesktop.systemd1.UnitInactive";
                    self.refuse(call, name, "Unit is not active.").await;
                }
                Some(_) => self.reply(call, &()).await,
            },
            "ListUnitsByPatterns" => self.list(call).await,
            "ListUnitsByNames" => {
                let names: Vec<String> = call.body().deserialize().unwrap();
                let rows: Vec<_> =
                    names.iter().map(|name| row(name, self.units.get(name))).collect();
                self.reply(call, &rows).await;
            }
            "Get" if two().1 == "InvocationID" => {
                let unit = self.unit_at(header.path().unwrap().as_str());
                let invocation = unit.map_or(Vec::new(), |unit| vec![unit.invocation; 16]);
                self.reply(call, &Variant::from(invocation)).await;
            }
            "Get" if two().1 == "ActiveExitTimestampMonotonic" => {
                let unit = self.unit_at(header.path().unwrap().as_str());
                let left = unit.map_or(0, |unit| unit.left_active);
                self.reply(call, &Variant::from(left)).await;
            }
            "Get" => {
                let value = match two().1.as_str() {
                    "Version" => "252.39-1~deb12u1",
                    "SystemState" => self.system_state,
                    other => panic!("nobody should ask for {other}"),
                };
                self.reply(call, &Variant::from(value)).await;
            }
            "GetAll" => {
                assert_eq!(text(), SERVICE);
                let unit = self.unit_at(header.path().unwrap().as_str());
                self.reply(call, &of_service(unit)).await;
            }
            other => panic!("nobody should call {other}"),
        }
    }

    fn unit_at(&self, path: &str) -> Option<&Unit> {
        let found = self.units.iter().find(|(name, _)| unit_path(name) == path);
        found.map(|(_, unit)| unit)
    }

    async fn start(&mut self, call: &Message) {
        let name = Transient::of(call).name;
        if self.units.contains_key(&name) {
            let text = format!("Unit {name} was already loaded or has a fragment file.");
            return self.refuse(call, "org.freedesktop.systemd1.UnitExists", &text).await;
        }
        if let Some((error, text)) = self.refuse.take() {
            return self.refuse(call, error, text).await;
        }
        self.units.insert(name, Unit::default());
        self.jobs += 1;
        let job = job_path(self.jobs);
        self.reply(call, &job).await;
    }

    async fn list(&self, call: &Message) {
        let (_, patterns): (Vec<String>, Vec<String>) = call.body().deserialize().unwrap();
        let fits = |name: &str| {
            let mut parts = patterns.iter().filter_map(|pattern| pattern.split_once('*'));
            parts.any(|(head, tail)| name.starts_with(head) && name.ends_with(tail))
        };
        let rows: Vec<_> = (self.units.iter())
            .filter(|(name, _)| fits(name))
            .map(|(name, unit)| row(name, Some(unit)))
            .collect();
        self.reply(call, &rows).await;
    }

    async fn reply<B: serde::Serialize + zbus::DynamicType>(&self, call: &Message, body: &B) {
        self.connection.reply(&call.header(), body).await.unwrap();
    }

    async fn refuse(&self, call: &Message, name: &str, text: &str) {
        let header = call.header();
        self.connection.reply_error(&header, name, &text).await.unwrap();
    }

    async fn no_such_unit(&self, call: &Message, unit: &str) {
        let text = format!("Unit {unit} not loaded.");
        self.refuse(call, "org.freedesktop.systemd1.NoSuchUnit", &text).await;
    }

    /// The main process of a unit ends: what is read changes, and the signal says so.
    pub async fn exit(
        &mut self,
        unit: &str,
        active: &'static str,
        evidence: (i32, i32, &'static str),
    ) {
        let (code, status, result) = evidence;
        if let Some(unit) = self.units.get_mut(unit) {
            unit.active_state = active;
            (unit.code, unit.status, unit.result) = evidence;
        }
        let changed = HashMap::from([
            ("ExecMainCode", Variant::from(code)),
            ("ExecMainStatus", Variant::from(status)),
            ("Result", Variant::from(result)),
        ]);
        let gone: Vec<String> = Vec::new();
        self.signal(&unit_path(unit), PROPERTIES, "PropertiesChanged", &(SERVICE, changed, gone))
            .await;
    }

    pub async fn job_removed(&mut self, unit: &str, result: &str) {
        let job = job_path(self.jobs);
        self.signal(ROOT, MANAGER, "JobRemoved", &(self.jobs, job, unit, result)).await;
    }

    pub async fn unit_removed(&mut self, unit: &str) {
        self.units.remove(unit);
        let path = OwnedObjectPath::try_from(unit_path(unit)).unwrap();
        self.signal(ROOT, MANAGER, "UnitRemoved", &(unit, path)).await;
    }

    pub async fn reloading(&self, begins: bool) {
        self.signal(ROOT, MANAGER, "Reloading", &begins).await;
    }

    async fn signal<B>(&self, path: &str, interface: &str, member: &str, body: &B)
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let to: Option<&str> = None;
        let sent = self.connection.emit_signal(to, path, interface, member, body);
        sent.await.unwrap();
    }

    /// What the bus answers when the service left without an answer.
    pub async fn lose(&self, call: &Message) {
        let text = "Message recipient disconnected from message bus without replying";
        self.refuse(call, "org.freedesktop.DBus.Error.NoReply", text).await;
    }

    /// The connection ends.
    pub async fn hang_up(self) {
        self.connection.close().await.unwrap();
    }
}

fn job_path(job: u32) -> OwnedObjectPath {
    OwnedObjectPath::try_from(format!("{ROOT}/job/{job}")).unwrap()
}

/// sd_bus_path_encode(3).
fn unit_path(unit: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let encode = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("_{byte:02x}") }
    };
    format!("{ROOT}/unit/{}", unit.bytes().map(encode).collect::<String>())
}

/// A unit as it is listed.
type Row<'a> = (
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    OwnedObjectPath,
    u32,
    &'a str,
    OwnedObjectPath,
);

fn row<'a>(name: &'a str, unit: Option<&Unit>) -> Row<'a> {
    let (load, active, sub) = match unit {
        Some(unit) => ("loaded", unit.active_state, sub_state(unit)),
        None => ("not-found", "inactive", "dead"),
    };
    let path = OwnedObjectPath::try_from(unit_path(name)).unwrap();
    let none = OwnedObjectPath::try_from("/").unwrap();
    let job = unit.map_or("", |unit| unit.job);
    (name, "", load, active, sub, "", path, u32::from(!job.is_empty()), job, none)
}

fn sub_state(unit: &Unit) -> &'static str {
    match (unit.active_state, unit.code) {
        ("active", 0) => "running",
        ("active", _) => "exited",
        ("activating", _) => "start",
        (other, _) => other,
    }
}

/// What is not there reads as success, as it does with systemd.
fn of_service(unit: Option<&Unit>) -> HashMap<&'static str, Variant<'static>> {
    let none = Unit { result: "success", ..Unit::default() };
    let unit = unit.unwrap_or(&none);
    HashMap::from([
        ("Result", Variant::from(unit.result)),
        ("ExecMainCode", Variant::from(unit.code)),
        ("ExecMainStatus", Variant::from(unit.status)),
        ("ExecMainExitTimestampMonotonic", Variant::from(unit.exited)),
        ("CPUUsageNSec", Variant::from(unit.cpu_nsec)),
        ("MemoryPeak", Variant::from(u64::MAX)),
        ("KillMode", Variant::from("control-group")),
        ("ControlGroup", Variant::from("")),
    ])
}
