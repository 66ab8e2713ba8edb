//! `archivist why`: why a crawl or snapshot is not done, or not as it should be.

use super::exit::{Exit, Failure};
use super::look;
use super::server::{Server, decode};
use super::text;
use crate::bus::report::Why;
use crate::config::Scope;
use crate::model::Owner;
use clap::Args;

#[derive(Args)]
pub struct WhyArgs {
    /// A crawl (c12) or a snapshot (s345)
    #[arg(value_name = "ID")]
    id: Owner,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: WhyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let id = args.id.to_string();
    let answer = server.call(server.proxy().why(&id)).await?;
    if args.json {
        look::print_json(&answer)?;
    } else {
        look::print(&told(&decode(&answer)?))?;
    }
    Ok(Exit::Done)
}

/// A sentence a line.
fn told(why: &Why) -> String {
    let mut lines = format!("{} is {}\n", why.id, why.status);
    for reason in &why.reasons {
        lines.push_str(&text::clean(&reason.text));
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::report::Reason;
    use crate::model::{Lifecycle, SnapshotId};

    #[test]
    fn a_sentence_a_line_without_tricks() {
        let reason = |text: &str| Reason {
            code: "failed".into(),
            text: text.into(),
            until: None,
        };
        let why = Why {
            id: Owner::Snapshot(SnapshotId(3)),
            status: Lifecycle::Queued,
            reasons: vec![reason("one"), reason("two\n\u{1b}[31mred")],
        };
        let told = told(&why);
        assert!(told.starts_with("s3 is queued\none\ntwo"), "{told}");
        assert_eq!(told.lines().count(), 3);
        assert!(!told.contains('\u{1b}'));
    }
}
