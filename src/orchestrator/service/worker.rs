//! The interface of workers.

use crate::bus::call::FromAnswer;
use crate::bus::limits::invalid;
use crate::main_loop::order::Calls;
use crate::work::calls::WorkerCall;
use archivist_shared::bus::documents::bounds::REPORT_MAX;
use archivist_shared::bus::documents::work::Report;
use std::sync::Arc;
use zbus::message::Header;
use zbus::{OwnedFd, fdo, interface};

pub(super) struct WorkerBus(pub(super) Calls);

/// Handles a call of a worker. A refused call is logged with the bus name of its sender.
async fn work<T: FromAnswer>(
    calls: &Calls,
    header: &Header<'_>,
    work: WorkerCall,
) -> fdo::Result<T> {
    let answer = calls.ask(work).await.map_err(fdo::Error::from);
    if let Err(fdo::Error::AccessDenied(why)) = &answer {
        let who = header.sender().map_or("an unknown sender", |name| name.as_str());
        let what = header.member().map_or("a call", |name| name.as_str());
        tracing::warn!("refused {what} of {who}: {why}");
    }
    answer
}

/// Longest report that is parsed in the task of the call, in bytes; a thread for less costs more.
const SHORT_REPORT_MAX: usize = 64 << 10;

/// Parses a report. A long one, which would hold up all other tasks, is parsed on a thread.
async fn parsed(report: &str) -> fdo::Result<Report> {
    fn parse(text: &str) -> fdo::Result<Report> {
        let sent: Report = serde_json::from_str(text).map_err(invalid)?;
        Ok(sent.bounded())
    }
    if report.len() <= SHORT_REPORT_MAX {
        return parse(report);
    }
    let text = report.to_owned();
    let parsing = tokio::task::spawn_blocking(move || parse(&text)).await;
    parsing.unwrap_or_else(|error| Err(fdo::Error::Failed(error.to_string())))
}

#[interface(name = "org.archivist1.Worker")]
impl WorkerBus {
    async fn attach(&self, token: &str, #[zbus(header)] header: Header<'_>) -> fdo::Result<String> {
        let token = token.to_owned();
        work(&self.0, &header, WorkerCall::Attach { token }).await
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
        work(&self.0, &header, WorkerCall::Run { token, hook, stdout }).await
    }

    async fn stop(
        &self,
        token: &str,
        hook: &str,
        force: bool,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let (token, hook) = (token.to_owned(), hook.to_owned());
        work(&self.0, &header, WorkerCall::Stop { token, hook, force }).await
    }

    async fn report(
        &self,
        token: &str,
        report: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        if report.len() > REPORT_MAX {
            let why = format!("the report has {} bytes, the limit is {REPORT_MAX}", report.len());
            return Err(fdo::Error::LimitsExceeded(why));
        }
        let report = Arc::new(parsed(report).await?);
        let token = token.to_owned();
        work(&self.0, &header, WorkerCall::Report { token, report, done: 0 }).await
    }

    async fn invocation(
        &self,
        token: &str,
        hook: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (token, hook) = (token.to_owned(), hook.to_owned());
        work(&self.0, &header, WorkerCall::Invocation { token, hook }).await
    }

    async fn snapshots_done(
        &self,
        token: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let token = token.to_owned();
        work(&self.0, &header, WorkerCall::SnapshotsDone { token }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn report(title: usize) -> String {
        let verdict = r#"{"state":"succeeded"}"#;
        let title = "t".repeat(title);
        let children = format!(r#"[{{"url":"http://a.test/","title":"{title}"}}]"#);
        let files = r#""output":null,"files":[],"size":0"#;
        format!(r#"{{"key":"wget/wget","verdict":{verdict},{files},"children":{children}}}"#)
    }

    #[tokio::test]
    async fn long_report_does_not_hold_up_other_tasks() {
        let (short, long) = (report(10), report(SHORT_REPORT_MAX));
        let parsed_short = parsed(&short).now_or_never();
        assert_eq!(parsed_short.unwrap().unwrap().children.len(), 1);
        assert!(parsed(&long).now_or_never().is_none());
        assert_eq!(parsed(&long).await.unwrap().children.len(), 1);
        let broken = parsed(&long[1..]).await;
        assert!(matches!(broken, Err(fdo::Error::InvalidArgs(_))), "{broken:?}");
    }
}
