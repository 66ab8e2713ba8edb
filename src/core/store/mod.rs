//! Copies of sealed snapshots in a store: a directory, a host over SSH, or S3. A copy is complete or
//! not visible, and the local files are removed only after the copy was read back.
//!
//!
//! The state of a copy is a row ([`Copy`]); a unit of its own does one [`Task`] at a time.

mod compare;
mod copy;
mod foreign;
mod keep;
mod location;
mod object;
mod queue;

pub use compare::{COPY_MISSING, Compared, Comparison, Found};
pub use copy::{Copy, CopyStatus, End, RESTORED_STAYS, Refused, Retries};
pub use foreign::{Foreign, digest_in_name, path_of_page};
pub use keep::{KEEP_ALLOWED, KeepLocal};
pub use location::{LOCATION_ALLOWED, Location, S3Location, SshLocation};
pub use location::{S3_KEYS, SSH_HOSTS, SSH_KEY};
pub use object::{
    Assignment, PICTURES, RESTORING, Record, SMALL_PICTURE, STORED_MARKER, StoredObject, Task,
};
pub use object::{final_name, is_leftover, is_part_of, is_reserved, partial_name};
pub use queue::{Transfers, decide_transfers, drop_before};
