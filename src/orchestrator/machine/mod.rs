//! What is read of the machine: clocks, space, memory, programs; and the record of deletions.

pub mod clock;
pub mod inspect;
pub mod library;
pub mod notify;
pub mod pressure;
pub mod private_file;
pub mod store_ids;
pub mod token;
