//! `archivist fleet restored`: an administrator declares that the database was restored from a backup.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet_service;
use crate::display::style;
use archivist_core::text::human_span;
use std::time::Duration;

pub(super) async fn run() -> Result<Exit, Failure> {
    let pause = fleet_service::restored().await?;
    style::print(&text(pause))?;
    Ok(Exit::Done)
}

fn text(pause: Duration) -> String {
    format!(
        "the database is declared restored: nodes connect and send what it lacks, and hosts are leased again in {}; see: archivist fleet nodes\n",
        human_span(pause)
    )
}
