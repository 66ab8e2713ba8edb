//! Whether a time server has set the clock. The kernel knows, whichever program sets the clock (chrony, ntpd,
//! systemd-timesyncd), and timedated asks the kernel (org.freedesktop.timedate1(5)): adjtimex(2) is behind the
//! system call filter of the orchestrator.

use super::client::PROPERTIES;
use super::error::explain;
use super::{ManagerError, SystemdClient};
use zbus::OwnedVariant;

const TIMEDATED: &str = "org.freedesktop.timedate1";

/// Returns whether a time server has set the clock of the machine.
///
/// # Errors
/// If there is no system bus, or timedated does not answer on it.
pub async fn is_clock_synchronized() -> Result<bool, ManagerError> {
    ask(&SystemdClient::connect(false).await?).await
}

async fn ask(client: &SystemdClient) -> Result<bool, ManagerError> {
    let fail = |error: zbus::Error| explain("ask", TIMEDATED, &error);
    let reply = client.connection().call_method(
        Some(TIMEDATED),
        "/org/freedesktop/timedate1",
        Some(PROPERTIES),
        "Get",
        &(TIMEDATED, "NTPSynchronized"),
    );
    let value: OwnedVariant = reply.await.map_err(fail)?.body().deserialize().map_err(fail)?;
    bool::try_from(value).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use zbus::Guid;
    use zbus::connection::Builder;

    struct Timedated(bool);

    #[zbus::interface(name = "org.freedesktop.timedate1")]
    impl Timedated {
        #[zbus(property, name = "NTPSynchronized")]
        fn ntp_synchronized(&self) -> bool {
            self.0
        }
    }

    #[tokio::test]
    async fn answer_is_that_of_timedated() {
        for state in [false, true] {
            let (theirs, ours) = UnixStream::pair().unwrap();
            let bus = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
            let bus = bus.serve_at("/org/freedesktop/timedate1", Timedated(state));
            let us = SystemdClient::over(Builder::unix_stream(ours).p2p());
            let (bus, us) = tokio::join!(bus.build(), us);
            let us = us.unwrap();
            assert_eq!(ask(&us).await.ok(), Some(state));
            bus.unwrap().close().await.unwrap();
            assert!(ask(&us).await.is_err(), "nothing answers");
        }
    }
}
