//! The interface for watches.

use crate::bus::limits::{document, few, invalid, small_enough};
use crate::main_loop::bus_context::BusContext;
use crate::watch::orders::WatchCall;
use archivist_core::model::CheckKind;
use archivist_shared::bus::callers::Kind;
use archivist_shared::bus::documents::watches::HistoryFilter;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

pub(crate) struct WatchesBus(pub BusContext);

#[interface(name = "org.archivist1.Watches")]
impl WatchesBus {
    async fn check(&self, watch: &str, kinds: Vec<String>) -> fdo::Result<String> {
        let kind = |text: &String| {
            CheckKind::parse(text)
                .filter(|kind| *kind != CheckKind::Alert)
                .ok_or_else(|| invalid(format!("'{text}' is not a kind of check")))
        };
        few(&kinds)?;
        let kinds = kinds.iter().map(kind).collect::<fdo::Result<_>>()?;
        self.0.ask(WatchCall::Check { watch: watch.to_owned(), kinds }).await
    }

    async fn cancel(&self, watch: &str) -> fdo::Result<u32> {
        self.0.ask(WatchCall::Cancel(watch.to_owned())).await
    }

    #[zbus(name = "Await")]
    async fn wait(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let id = id.parse().map_err(invalid)?;
        let (_, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.0.ask(WatchCall::Await(id)).await
    }

    async fn list(&self, name: &str) -> fdo::Result<String> {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        small_enough(self.0.ask(WatchCall::List(name)).await?)
    }

    async fn history(&self, watch: &str, filter: &str) -> fdo::Result<String> {
        let filter: HistoryFilter = document(filter)?;
        let watch = watch.to_owned();
        small_enough(self.0.ask(WatchCall::History { watch, filter }).await?)
    }

    async fn why(&self, watch: &str) -> fdo::Result<String> {
        self.0.ask(WatchCall::Why(watch.to_owned())).await
    }
}
