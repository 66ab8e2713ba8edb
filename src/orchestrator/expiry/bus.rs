//! The interface for the rules of `Retention=`.

use crate::bus::limits::{few, invalid};
use crate::expiry::RetentionCall;
use crate::main_loop::bus_context::{BusContext, caller};
use archivist_core::plan::RetentionRule;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

pub(crate) struct RetentionBus(pub BusContext);

#[interface(name = "org.archivist1.Retention")]
impl RetentionBus {
    async fn expired(&self, rules: Vec<String>, after: i64) -> fdo::Result<String> {
        few(&rules)?;
        let mut read = Vec::new();
        for text in &rules {
            let rule = RetentionRule::parse(text);
            let wrong = |allowed| invalid(format!("bad rule '{text}', expected {allowed}"));
            rule.map_err(wrong)?.add_to(&mut read);
        }
        self.0.ask(RetentionCall::Expired { rules: read, after }).await
    }

    async fn confirm(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.0.ask(RetentionCall::Confirm { user: caller(connection, &header).await? }).await
    }
}
