//! Connections to the bus.

use zbus::connection::Builder;

/// Returns a builder for a connection to the system bus, or for `user` to the session bus.
pub fn builder(user: bool) -> Builder<'static> {
    if user { Builder::session() } else { Builder::system() }
}
