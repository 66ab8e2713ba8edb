//! Turns a [`UnitSpec`] into properties of StartTransientUnit, in the types of
//! org.freedesktop.systemd1(5).

use super::{Stdio, UnitSpec};
use crate::model::Subnet;
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Property {
    /// `s`.
    Text(String),
    /// `b`.
    Flag(bool),
    /// `t`.
    Number(u64),
    /// `as`.
    List(Vec<String>),
    /// `a(sasb)`: program and arguments, in which systemd expands variables.
    Command(Vec<String>),
    /// `a(sasas)`: program and arguments, in which nothing is expanded (`no-env-expand`).
    LiteralCommand(Vec<String>),
    /// `a(ssbt)` from source and destination; the rest is "may be missing", for a source after `-`,
    /// and "what is mounted below".
    Binds(Vec<(String, String)>),
    /// `a(ss)`: names of credentials, each with its source.
    Credentials(Vec<(String, String)>),
    /// `aay`: fields of every journal line.
    Bytes(Vec<String>),
    /// `a(iayu)`: family, address in network order, prefix.
    #[serde(serialize_with = "as_texts")]
    Networks(Vec<Subnet>),
    Descriptor,
}

fn as_texts<S: Serializer>(networks: &[Subnet], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(networks.iter().map(Subnet::to_string))
}

/// Name resolution in a crawl's private network: the machine's resolver may be a server on its
/// loopback.
const RESOLVER: &str = "/usr/lib/archivist/resolv.conf";

/// Variables that a service manager sets by itself (systemd.exec(5)). The launcher keeps variables
/// that are set, so that an administrator's `Environment=` wins; these must be set on the unit, and
/// none is secret.
const DEFAULTS: [&str; 6] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"];

/// Returns the command line of the unit. With a launcher, it names only the program, for users who
/// look at the unit.
fn command(spec: &UnitSpec) -> Vec<String> {
    match &spec.launcher {
        None => spec.argv.clone(),
        Some(launcher) => {
            let program = spec.argv.first().cloned().into_iter();
            std::iter::once(launcher.clone()).chain(program).collect()
        }
    }
}

/// Returns the property for a command line, in which nothing must be expanded.
///
/// systemd 252 writes `ExecStartEx=` into the file of the unit and does not know it when it reads the
/// file: after a `daemon-reload`, a unit that runs has no dependency on its slice any more. So it is
/// sent only for arguments with a `$`.
fn exec_start(argv: Vec<String>) -> (&'static str, Property) {
    if argv.iter().any(|argument| argument.contains('$')) {
        ("ExecStartEx", Property::LiteralCommand(argv))
    } else {
        ("ExecStart", Property::Command(argv))
    }
}

/// Returns names and values in a fixed order.
pub fn properties(spec: &UnitSpec) -> Vec<(&'static str, Property)> {
    use Property::*;
    let text = |value: &str| Text(value.to_owned());
    let mut out = vec![
        ("Description", text(&spec.description)),
        ("Type", text(if spec.notify { "notify" } else { "simple" })),
        // A unit stays loaded until its outcome is committed, even if the orchestrator fails.
        ("RemainAfterExit", Flag(true)),
        ("CollectMode", text("inactive")),
        ("Slice", text(&spec.slice)),
        exec_start(command(spec)),
    ];
    if let (Some(_), Some(program)) = (&spec.launcher, spec.argv.first()) {
        // Journal lines carry the name of the program, not of the launcher.
        let name = program.rsplit('/').next().unwrap_or(program);
        out.push(("SyslogIdentifier", text(name)));
    }
    if spec.notify {
        out.push(("NotifyAccess", text("main")));
    }
    let open = |key: &str| spec.launcher.is_none() || DEFAULTS.contains(&key);
    let pairs: Vec<String> = spec
        .environment
        .iter()
        .filter(|(key, _)| open(key))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !pairs.is_empty() {
        out.push(("Environment", List(pairs)));
    }
    // The launcher changes the directory. systemd would load a mount unit for each part of the path
    // and report all of them over the bus, at every start.
    let directory = spec.working_directory.as_ref();
    if let Some(directory) = directory.filter(|_| spec.launcher.is_none()) {
        out.push(("WorkingDirectory", text(&directory.to_string_lossy())));
    }
    out.push(match &spec.stdin {
        Some(file) => ("StandardInputFile", text(&file.to_string_lossy())),
        None => ("StandardInput", text("null")),
    });
    match spec.stdout {
        Stdio::Journal => out.push(("StandardOutput", text("journal"))),
        Stdio::Descriptor => {
            // The value must differ from that for standard error, or systemd connects both to the
            // same descriptor.
            out.push(("StandardOutput", text("null")));
            out.push(("StandardOutputFileDescriptor", Descriptor));
        }
    }
    out.push(("StandardError", text("journal")));
    if let Some(limit) = spec.limit {
        let usec = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        out.push(("RuntimeMaxUSec", Number(usec)));
    }
    let same = |dir: &std::path::PathBuf| {
        let dir = dir.to_string_lossy().into_owned();
        let place = dir.strip_prefix('-').unwrap_or(&dir).to_owned();
        (dir, place)
    };
    let paths = |dirs: &[std::path::PathBuf]| dirs.iter().map(same).collect::<Vec<_>>();
    let mut binds = paths(&spec.bind);
    binds.extend(spec.tmp.as_ref().map(|dir| (same(dir).0, "/tmp".to_owned())));
    if !binds.is_empty() {
        out.push(("BindPaths", Binds(binds)));
    }
    let mut read_only = paths(&spec.bind_read_only);
    if let Some(network) = &spec.network {
        let unit = vec![network.unit.clone()];
        out.push(("BindsTo", List(unit.clone())));
        out.push(("After", List(unit)));
        let path = network.path.to_string_lossy();
        out.push(("NetworkNamespacePath", text(&path)));
        read_only.push((RESOLVER.to_owned(), "/etc/resolv.conf".to_owned()));
    }
    if !read_only.is_empty() {
        out.push(("BindReadOnlyPaths", Binds(read_only)));
    }
    if !spec.credentials.is_empty() {
        out.push(("LoadCredential", Credentials(spec.credentials.clone())));
    }
    let addresses =
        [("IPAddressDeny", &spec.addresses.refused), ("IPAddressAllow", &spec.addresses.allowed)];
    for (name, networks) in addresses {
        if !networks.is_empty() {
            out.push((name, Networks(networks.clone())));
        }
    }
    if !spec.wants.is_empty() {
        out.push(("Wants", List(spec.wants.clone())));
    }
    if let Some(user) = &spec.user {
        out.push(("User", text(user)));
    }
    let fields = spec.log_fields.iter().map(|(key, value)| format!("{key}={value}"));
    out.push(("LogExtraFields", Bytes(fields.collect())));
    out
}
