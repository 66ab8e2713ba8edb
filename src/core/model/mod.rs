//! Domain types and their states. Nothing in here reads a clock, a file or a bus.

mod act;
mod audience;
mod backoff;
mod bounds;
mod check;
pub mod cookies;
mod http;
mod id;
mod id_marks;
mod lifecycle;
mod need;
mod outcome;
mod persona;
mod persona_settings;
mod probe;
mod recording;
mod result;
mod runner;
pub mod search;
mod snap;
mod time;
mod unsaved;
mod version;
pub mod web;

pub use act::{Act, CALLS, RETRY_HOOK, Standing};
pub use audience::{Audience, BadAudience, FLEET};
pub use backoff::Backoff;
pub use bounds::{PAGE_TAGS_MAX, TAG_MAX, TAGS_MAX, TEXT_MAX, TIME_MAX, Tags, cut};
pub use check::{CheckKind, CheckRecord, Flip, Health, NO_ANSWER, Pool};
pub use http::{BadHttpRange, HttpAnswer, HttpErrors, HttpRange, is_http_error};
pub use id::{AnyId, CrawlId, Owner, ParseIdError, RunId, SnapshotId};
pub use id_marks::IdMarks;
pub use lifecycle::{IllegalTransition, Lifecycle, Step};
pub use need::{Absence, Need, TAB};
pub use outcome::{Accounting, DEPENDENCY, Outcome, Reading, start_failure};
pub use persona::{BadPersonaName, COOKIES, PersonaName};
pub use persona_settings::{BadPersonaSetting, PersonaSettings};
pub use probe::{
    ClientIdentity, Probe, ProbeBody, is_harmless_header, parse_body, parse_credential,
    parse_expect, parse_header, parse_method, shown_header,
};
pub use recording::{
    RECORDER, REPLAY_HOLDS, VERIFIER, fidelity, in_percent, recording_text, replay_text,
};
pub use result::{
    EXIT_SKIPPED, Figures, LACKS, OutputFile, ResultState, Uses, Verdict, stderr_file,
};
pub use runner::{Locality, ProcessLocation, Runner};
pub use snap::{SNAP_HEAD_BYTES, is_of_snap};
pub use time::Time;
pub use unsaved::Unsaved;
pub use version::{CloserLook, PageVersion, TextDigest};
pub use web::list::{Folders, LineEntry, List, Place, kept_entry, moment, parse_line};
pub use web::network_error::{NetworkError, REDIRECT_REFUSED};
pub use web::reach::{AddressKind, Reach, is_domain_on_internet, is_on_internet};
pub use web::robots::Robots;
pub use web::shown::{HIDDEN, has_secret_name, public_url, shown_setting, without_userinfo};
pub use web::subnet::{ParseSubnetError, Subnet};
pub use web::url::{PageUrl, Task, URL_MAX, UrlError, is_web};
