//! Third step: typed settings with their defaults (archivist.conf(5)).

use super::inputs::{Inputs, Target};
use super::{ConfigError, NetworkMode};
use crate::alert::Alert;
use archivist_core::model::{HttpErrors, Reach};
use archivist_core::plan::{Quota, QuotaOf, RetentionRule};
use archivist_core::store::{KeepLocal, Location};
use archivist_core::text::Problem;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Effective configuration. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    // [Orchestrator]
    /// Workers of one kind (crawl, snapshot) at a time.
    pub workers_per_kind: u32,
    /// Workers of all kinds at a time.
    pub workers_max: u32,
    /// Snapshots of one crawl at a time.
    pub snapshots_per_crawl: u32,
    /// Snapshots of one host at a time, of all crawls together.
    pub host_workers: u32,
    /// Time between two starts of snapshots on a host.
    pub host_delay: Duration,
    /// Concurrent status checks of watches.
    pub fast_checks: u32,
    /// Concurrent slow checks of watches.
    pub slow_checks: u32,
    /// Share of 10 s, in percent, that processes of archivist may wait for memory before nothing
    /// more starts.
    pub memory_pressure_max: u32,
    /// How long the queue must be empty before `--exit-on-idle` stops the orchestrator.
    pub idle_timeout: Duration,
    /// Concurrent start jobs at PID 1.
    pub starts_in_flight: u32,
    /// Starts of one worker before its item is quarantined.
    pub attempts_max: u32,
    /// Delay before the second attempt; it doubles from one attempt to the next.
    pub retry_first: Duration,
    /// Longest delay between attempts.
    pub retry_longest: Duration,
    /// What becomes of pages whose document is an HTTP error.
    pub http_errors: HttpErrors,
    /// Visits of a page that the server refuses in a row.
    pub http_attempts: u32,
    /// Longest time that a page or host waits because its server asks for it.
    pub http_wait_max: Duration,
    /// Time limit of a snapshot; one that reaches it is not retried.
    pub snapshot_limit: Duration,
    /// What starts when a crawl is sealed with success.
    pub on_sealed: Option<Alert>,
    /// What starts when a crawl is sealed, and something of it failed.
    pub on_failed: Option<Alert>,
    /// What starts when the last open crawl has ended.
    pub on_idle: Option<Alert>,
    /// Whether members of the group archivist may install programs into the library.
    pub members_install: bool,
    /// Whether members of the group archivist may delete and pin the pages of all users.
    pub members_delete: bool,

    // [Archive]
    /// Bytes that must stay free on the file system of the archive.
    pub min_free_space: u64,
    /// Directories with plugins, in addition to those of the scope
    /// ([`super::Scope::plugin_roots`]).
    pub plugin_path: Vec<PathBuf>,
    /// Plugins that run if a crawl names none; empty means all enabled plugins.
    pub plugins: Vec<String>,
    /// Whether plugins have one index for the archive instead of one for each crawl.
    pub shared_index: bool,
    /// Domains and regular expressions, one per line; if not empty, a URL must match one of them.
    pub url_allow: String,
    /// Same; a URL that matches one of them is not archived.
    pub url_deny: String,
    /// Share of the pages whose recordings are replayed and compared, in percent.
    pub verify_replay: u32,
    /// How long pages are kept, at most one rule for each tag and one for all pages.
    pub retention: Vec<RetentionRule>,
    /// How many bytes pages may have, at most one quota for each tag, one for users and one for all pages.
    pub quotas: Vec<Quota>,

    // [Hooks]
    /// Time limit of one run of a hook whose plugin has no limit.
    pub hook_timeout: Duration,
    /// Time that the next hook waits for a daemon's first line of output.
    pub ready_limit: Duration,
    /// Longest time that a daemon may take to end after SIGTERM.
    pub stop_limit: Duration,
    /// Time limit of one run of a daemon hook.
    pub daemon_limit: Duration,
    /// Bytes of standard output after which a hook is stopped.
    pub output_limit: u64,
    /// Network of hooks: the machine's, or a private one for each unit.
    pub network: NetworkMode,
    /// What hooks and checks may reach, in addition to the Internet and what their own URLs open.
    pub reach: Reach,

    // [Fleet]
    /// URL of the database that the machines of a fleet share; empty if the machine is in none.
    pub fleet_database: String,
    /// Name of this machine in the fleet; empty means the host name.
    pub fleet_name: String,
    /// Duration of the leases of hosts; `None` leaves it to the other nodes of the fleet.
    pub lease: Option<Duration>,
    /// Where sealed snapshots are copied; `None` means nowhere.
    pub store: Option<Location>,
    /// How long their local files stay.
    pub keep_local: KeepLocal,

    // [Config]
    /// Values for plugins, under the names of their config.json.
    pub values: BTreeMap<String, String>,
}

/// Processors of the machine that the defaults in archivist.conf(5) are written for.
const PROCESSORS: u32 = 2;

impl Default for Settings {
    fn default() -> Self {
        Settings::for_processors(PROCESSORS)
    }
}

impl Settings {
    /// Returns the defaults for this machine, of which the affinity and the cgroup of this process
    /// count.
    pub fn built_in() -> Settings {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Settings::for_processors(u32::try_from(processors).unwrap_or(u32::MAX))
    }

    /// Returns the setting that has a rule for the pages with a tag, if there is one.
    pub fn rule_of_tag(&self, name: &str) -> Option<&'static str> {
        if self.retention.iter().any(|rule| rule.tag.as_deref() == Some(name)) {
            return Some("Retention=");
        }
        let has_quota = |quota: &Quota| matches!(&quota.of, QuotaOf::Tag(tag) if tag == name);
        self.quotas.iter().any(has_quota).then_some("Quota=")
    }

    /// Returns the defaults for this number of processors. The limits agree: one crawl of several
    /// hosts can use all slots for snapshots, and all slots of both kinds can be used. A page mostly
    /// waits for its network, so there are two workers for each processor; the upper bound is for
    /// memory. `HostWorkers=` does not grow: it protects the other side.
    pub(super) fn for_processors(processors: u32) -> Settings {
        let workers = processors.saturating_mul(2).clamp(4, 16);
        Settings {
            workers_per_kind: workers,
            workers_max: 2 * workers,
            snapshots_per_crawl: workers,
            host_workers: 4,
            host_delay: Duration::ZERO,
            fast_checks: 2,
            slow_checks: 2,
            memory_pressure_max: 60,
            idle_timeout: Duration::from_secs(3),
            starts_in_flight: 8,
            attempts_max: 3,
            retry_first: Duration::from_secs(60),
            retry_longest: Duration::from_secs(3600),
            http_errors: HttpErrors::Keep,
            http_attempts: 5,
            http_wait_max: Duration::from_secs(24 * 3600),
            snapshot_limit: Duration::from_secs(12 * 3600),
            on_sealed: None,
            on_failed: None,
            on_idle: None,
            members_install: true,
            members_delete: false,
            min_free_space: 1 << 30,
            plugin_path: Vec::new(),
            plugins: Vec::new(),
            shared_index: true,
            url_allow: String::new(),
            url_deny: String::new(),
            verify_replay: 5,
            retention: Vec::new(),
            quotas: Vec::new(),
            hook_timeout: Duration::from_secs(60),
            ready_limit: Duration::from_secs(5),
            stop_limit: Duration::from_secs(12 * 3600),
            daemon_limit: Duration::from_secs(12 * 3600),
            output_limit: 64 << 20,
            network: NetworkMode::Auto,
            reach: Reach::default(),
            fleet_database: String::new(),
            fleet_name: String::new(),
            lease: None,
            store: None,
            keep_local: KeepLocal::Always,
            values: BTreeMap::new(),
        }
    }

    /// Applies `inputs` to the defaults. All bad values are reported at once.
    pub fn from_inputs(inputs: &Inputs, built_in: &Settings) -> Result<Settings, ConfigError> {
        let mut settings = built_in.clone();
        let mut problems = Vec::new();
        for input in &inputs.inputs {
            let value = input.value.as_str();
            match &input.target {
                Target::Value(name) if value.is_empty() => {
                    settings.values.remove(name);
                }
                Target::Value(name) => {
                    settings.values.insert(name.clone(), value.to_owned());
                }
                Target::Setting(key) if value.is_empty() => {
                    (key.reset)(&mut settings, built_in.clone());
                }
                Target::Setting(key) => {
                    if let Err(allowed) = (key.set)(&mut settings, value) {
                        let what = format!(
                            "bad value '{value}' of {}= in [{}], expected {allowed}",
                            key.name, key.section
                        );
                        problems.push(Problem::at(&input.location, what));
                    }
                }
            }
        }
        if problems.is_empty() { Ok(settings) } else { Err(ConfigError { problems }) }
    }
}
