//! `archivist why`: why a crawl or snapshot is not done, or not as it should be; why the checks of a
//! watch wait, or were not good.

use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::look;
use archivist_core::model::Owner;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Reason, Why, WhyWatch};
use archivist_shared::config::Scope;
use clap::Args;

#[derive(Args)]
pub struct WhyArgs {
    /// A crawl (c12), a snapshot (s345), or the name of a watch
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: WhyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let answer = server.call(|| server.proxy().why(&args.id)).await?;
    if args.json {
        look::print_json(&answer)?;
    } else if args.id.parse::<Owner>().is_ok() {
        let why: Why = decode(&answer)?;
        let head = format!("{} is {}", why.id, why.status);
        look::print(&told(&head, &why.reasons))?;
    } else {
        let why: WhyWatch = decode(&answer)?;
        let head = format!("watch {}", why.watch);
        look::print(&told(&head, &why.reasons))?;
    }
    Ok(Exit::Done)
}

/// A sentence a line.
fn told(head: &str, reasons: &[Reason]) -> String {
    let mut lines = format!("{}\n", clean(head));
    for reason in reasons {
        lines.push_str(&clean(&reason.text));
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_a_line_without_tricks() {
        let reason = |text: &str| Reason {
            code: "failed".into(),
            text: text.into(),
            until: None,
        };
        let reasons = [reason("one"), reason("two\n\u{1b}[31mred")];
        let told = told("s3 is queued", &reasons);
        assert!(told.starts_with("s3 is queued\none\ntwo"), "{told}");
        assert_eq!(told.lines().count(), 3);
        assert!(!told.contains('\u{1b}'));
    }
}
