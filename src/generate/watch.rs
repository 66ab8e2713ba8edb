//! `NAME.watch` → its timers.

use super::Context;
use super::reader::Reader;
use super::unit_file::Units;

/// Keys of [Watch].
pub const KEYS: [&str; 0] = [];

/// Sections whose assignments are taken over into the units.
const PASSED: [&str; 4] = ["Unit", "Service", "Timer", "Install"];

/// The units of one watch. Keys are asked of `reader` ([`Reader::last`], [`Reader::all`],
/// [`Reader::span`] …), which keeps what is wrong with them: after [`Reader::refuse`] the units
/// are thrown away. Each file costs 10 µs at every boot and reload: prefer an instance of a template
/// in units/ to a unit of its own.
pub fn units(reader: &mut Reader<'_>, _context: &Context) -> Units {
    reader.know(&KEYS, &PASSED);
    Units::default()
}
