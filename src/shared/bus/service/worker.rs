//! The interface of workers.

use super::{Calls, ask, invalid};
use crate::bus::call::{Call, Reply, Work};
use crate::bus::documents::bounds::REPORT_MAX;
use crate::bus::documents::work::Report;
use std::sync::Arc;
use zbus::message::Header;
use zbus::{OwnedFd, fdo, interface};

pub(super) struct Worker(pub(super) Calls);

/// Handles a call of a worker. A refused call is logged with the bus name of its sender.
async fn work<T>(
    calls: &Calls,
    header: &Header<'_>,
    make: impl FnOnce(Reply<T>) -> Work,
) -> fdo::Result<T> {
    let answer = ask(calls, |reply| Call::Work(make(reply))).await;
    if let Err(fdo::Error::AccessDenied(why)) = &answer {
        let who = header
            .sender()
            .map_or("an unknown sender", |name| name.as_str());
        let what = header.member().map_or("a call", |name| name.as_str());
        tracing::warn!("refused {what} of {who}: {why}");
    }
    answer
}

#[interface(name = "org.archivist1.Worker")]
impl Worker {
    async fn attach(&self, token: &str, #[zbus(header)] header: Header<'_>) -> fdo::Result<String> {
        let token = token.to_owned();
        work(&self.0, &header, |reply| Work::Attach { token, reply }).await
    }

    async fn run(
        &self,
        token: &str,
        hook: &str,
        stdout: OwnedFd,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (token, hook) = (token.to_owned(), hook.to_owned());
        let stdout = Arc::new(std::os::fd::OwnedFd::from(stdout));
        work(&self.0, &header, |reply| Work::Run {
            token,
            hook,
            stdout,
            reply,
        })
        .await
    }

    async fn stop(
        &self,
        token: &str,
        hook: &str,
        force: bool,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let (token, hook) = (token.to_owned(), hook.to_owned());
        work(&self.0, &header, |reply| Work::Stop {
            token,
            hook,
            force,
            reply,
        })
        .await
    }

    async fn report(
        &self,
        token: &str,
        report: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        if report.len() > REPORT_MAX {
            let why = format!(
                "the report has {} bytes, the limit is {REPORT_MAX}",
                report.len()
            );
            return Err(fdo::Error::LimitsExceeded(why));
        }
        let sent: Report = serde_json::from_str(report).map_err(invalid)?;
        let report = Arc::new(sent.bounded());
        let token = token.to_owned();
        work(&self.0, &header, |reply| Work::Report {
            token,
            report,
            done: 0,
            reply,
        })
        .await
    }

    async fn invocation(
        &self,
        token: &str,
        hook: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (token, hook) = (token.to_owned(), hook.to_owned());
        work(&self.0, &header, |reply| Work::Invocation {
            token,
            hook,
            reply,
        })
        .await
    }

    async fn snapshots_done(
        &self,
        token: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let token = token.to_owned();
        work(&self.0, &header, |reply| Work::SnapshotsDone {
            token,
            reply,
        })
        .await
    }
}
