//! The interface for full text search.

use crate::bus::limits::document;
use crate::indexing::Rebuild;
use crate::main_loop::bus_context::{BusContext, caller};
use crate::search::Ask;
use archivist_core::model::search::SearchQuestion;
use archivist_shared::bus::callers::Kind;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

pub(crate) struct SearchBus(pub BusContext);

#[interface(name = "org.archivist1.Search")]
impl SearchBus {
    async fn search(
        &self,
        question: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let question: SearchQuestion = document(question)?;
        if !question.is_asked() {
            let why = "the question has neither words nor conditions".to_owned();
            return Err(fdo::Error::InvalidArgs(why));
        }
        let (_, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.0.ask(Ask { question }).await
    }

    async fn rebuild(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.0.ask(Rebuild { user: caller(connection, &header).await? }).await
    }
}
