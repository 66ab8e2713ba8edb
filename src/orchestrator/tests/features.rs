//! What rooms that a build may lack add to the random operations and to the invariants after each turn.

use super::bed::Bed;

/// Random operations; the number chooses among existing things.
pub const OPERATIONS: &[fn(&mut Bed, usize)] = &[
    #[cfg(feature = "watches")]
    crate::watch::tests::elapse,
];

pub const INVARIANTS: &[fn(&mut Bed)] = &[
    #[cfg(feature = "watches")]
    crate::watch::tests::checks_are_sound,
];
