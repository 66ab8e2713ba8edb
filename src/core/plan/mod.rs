//! The decisions of the orchestrator. Everything here is a function of its arguments, and the time
//! and the limits are among them.

mod blocker;
mod cancel;
mod checks;
mod clock;
mod complete;
mod crawl_end;
mod decide;
mod disk;
mod expiry;
mod host_lease;
mod idle;
mod interrupt;
mod network;
mod notice;
mod outlook;
mod page_order;
mod pause;
mod pressure;
mod quota;
mod reading;
mod reconcile;
mod report;
mod retry;
mod run_call;
mod saved;
mod settle;
mod takeover;
mod view;
mod visit;

pub use blocker::{Blocker, Limits};
pub use cancel::{Abort, EndRun, Tidy, Wanted, abort, admits_worker, cancel, end_run};
pub use cancel::{is_abandoned, tidy};
pub use checks::starts_again;
pub use checks::{CheckPool, against_check, conclude, due_checks, keep_until, prune_at};
pub use clock::{CLOCK_STEP_MAX, ClockChange, ClockDoubt, ClockReading, ClockState};
pub use complete::{errors_text, incomplete_text, is_incomplete, partial_text};
pub use crawl_end::{CrawlEnd, Occasion};
pub use decide::{Decision, Places, against_host, decide};
pub use disk::{Amount, DiskPace, Lack, Writer, lack, still, worst};
pub use expiry::{AgingPage, RETENTION_ALLOWED, RetentionReview, RetentionRule, expiry, rules_for};
pub use host_lease::{Clocks, HostLease, RecordedLease};
pub use idle::Idle;
pub use interrupt::{RunFlags, WaitedFor, awaits_decision, interrupted, runs_again};
pub use network::{HostNetwork, Network, NetworkOutage};
pub use notice::{Notice, becomes_idle, is_announced};
pub use outlook::Outlook;
pub use page_order::{HostRange, PagePosition, host_turns, retries_first, take_turns};
pub use pause::{RunningUnit, excuses_time_limit, pause, resume, resume_step, running_unit};
pub use pressure::pressure;
pub use pressure::{Allowance, INODES_NEEDED, LOAD_INTERVAL, Load, LoadLimits, Shortage, Stuck};
pub use quota::{QUOTA_ALLOWED, Quota, QuotaOf, QuotaRound};
pub use reading::{Ending, Evidence, StartError, Started, UnitSeen, UnitState};
pub use reading::{recorded_outcome, started, unit_state};
pub use reconcile::{LiveUnit, OpenRun, Repair, reconcile};
pub use report::{ReportStep, Reporter, report_step, takes_depth};
pub use retry::{Retry, lacks, may_retry, reopens_crawl, retries_whole_page, retry, with_plugin};
pub use run_call::{LastRun, RunCall, RunFacts, is_joinable, run_call};
pub use saved::{
    Judgement, PageResult, PageRole, PageRoles, files_of_saved, is_saved, judge, newest,
    opens_pages,
};
pub use settle::{
    AfterCrawlWorker, AfterWorker, PAUSED, Settled, Uncounted, WithoutHooks, WorkerEnd,
};
pub use settle::{after_crawl_worker, after_worker, settle_worker};
pub use takeover::{Gate, OtherRunner, gate, may_be_killed};
pub use view::{Due, Host, HostId, OpenCrawl, View};
pub use visit::{
    HEADERS, Treatment, Visit, VisitRules, became_error, is_last_visit, is_lost, kept_note,
    shows_document, skipped_with_visit,
};
