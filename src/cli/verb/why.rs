//! `archivist why`: why a crawl, snapshot or run is not done or failed; why checks of a watch wait or
//! failed.

use crate::client::details;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::server::{Server, decode};
use crate::client::timers;
use crate::display::{standard_error, style};
use archivist_config::Scope;
use archivist_core::model::{AnyId, Owner};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Details, Reason, Why, WhyRun, WhyWatch};
use archivist_shared::bus::documents::watches::Watch;
use archivist_shared::bus::wire::WatchesProxy;
use clap::Args;

/// Explain why a crawl, snapshot, run or watch is not done, or failed
///
/// The command says why a crawl or snapshot has not finished, or not completely, one sentence per
/// line. After these, it lists the results that failed or were skipped, with the reason, and the
/// command that installs a missing program. The answers come from the same functions by which the
/// orchestrator decides.
#[derive(Args)]
pub struct WhyArgs {
    /// A crawl (c12), a snapshot (s345), a run (r678), or the name of a watch
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    local: Local,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: WhyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let fleet = match args.id.parse::<AnyId>() {
        Ok(AnyId::Owner(id)) => {
            let fleet = Fleet::reach(scope, args.local).await?;
            fleet.map(|fleet| (id, fleet))
        }
        _ => None,
    };
    if let Some((id, fleet)) = fleet {
        let mut why = of_fleet(id, &fleet, scope).await?;
        if !why.status.is_final()
            && let Ok(Some(text)) = fleet.fault().await
        {
            // Without the database, what it says of the queue is not the reason.
            let code = "fleet".to_owned();
            why.reasons.insert(0, Reason { code, text, until: None });
        }
        print(&why, args.json)?;
        return name_files(AnyId::Owner(id), &args, scope).await;
    }
    let server = Server::reach(scope).await?;
    let id = args.id.parse::<AnyId>();
    let ask = || async {
        match &id {
            Ok(_) => server.proxy().why(&args.id).await,
            Err(_) => server.feature::<WatchesProxy<'_>>().await?.why(&args.id).await,
        }
    };
    let answer = server.call(ask).await?;
    let (head, reasons) = match id {
        Ok(AnyId::Owner(_)) => {
            let why: Why = decode(&answer)?;
            (format!("{} is {}", why.id, why.status), why.reasons)
        }
        Ok(AnyId::Run(_)) => {
            let why: WhyRun = decode(&answer)?;
            let verb = match why.status.as_str() {
                "ended" => "has ended".to_owned(),
                status => format!("is {status}"),
            };
            (format!("{} {verb}", why.run), why.reasons)
        }
        Err(_) => return of_watch(&server, &answer, &args, scope).await,
    };
    if args.json {
        style::print_json(&answer)?;
    } else {
        style::say(&summary(&head, &reasons))?;
    }
    match id {
        Ok(id) => name_files(id, &args, scope).await,
        Err(_) => Ok(Exit::Done),
    }
}

/// Prints the files with the standard error of failed hooks.
async fn name_files(id: AnyId, args: &WhyArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.json {
        return Ok(Exit::Done);
    }
    let details: Details = decode(&details::fetch(id, args.local, scope).await?)?;
    style::print(&standard_error::lines(details.runs()))?;
    Ok(Exit::Done)
}

/// Asks the fleet, and of what this machine has, the machine.
async fn of_fleet(id: Owner, fleet: &Fleet, scope: &Scope) -> Result<Why, Failure> {
    let wide = match fleet.why(id).await {
        Ok(answer) => Ok(decode::<Why>(&answer)?),
        Err(failure) if failure.is_unreachable() => return Err(failure),
        Err(failure) => Err(failure),
    };
    let is_elsewhere =
        matches!((&wide, id), (Ok(why), Owner::Snapshot(_)) if !fleet.is_here(why.node.as_deref()));
    if is_elsewhere {
        return wide;
    }
    let here = match Server::reach(scope).await {
        Ok(server) => {
            let id = id.to_string();
            server.ask(|| server.proxy().why(&id)).await
        }
        Err(failure) => Err(failure),
    };
    match (wide, here) {
        (Ok(wide), Ok(here)) => Ok(joined(wide, here)),
        (Ok(why), Err(_)) | (Err(_), Ok(why)) => Ok(why),
        (Err(failure), Err(_)) => Err(failure),
    }
}

/// Returns the reasons of the fleet, then those of this machine that differ. Of a page that ended here, the machine
/// alone knows what its files lack.
fn joined(wide: Why, here: Why) -> Why {
    let is_page = matches!(wide.id, Owner::Snapshot(_));
    let reasons = match (wide.status.is_final(), here.status.is_final()) {
        (true, true) if is_page => here.reasons,
        (false, false) => {
            let more = here.reasons.into_iter();
            let more =
                more.filter(|reason| wide.reasons.iter().all(|known| known.text != reason.text));
            let more: Vec<Reason> = more.collect();
            [wide.reasons, more].concat()
        }
        _ => wide.reasons,
    };
    Why { reasons, ..wide }
}

fn print(why: &Why, is_json: bool) -> Result<Exit, Failure> {
    if is_json {
        style::print_value(why)?;
    } else {
        let head = format!("{} is {}", why.id, why.status);
        style::say(&summary(&head, &why.reasons))?;
    }
    Ok(Exit::Done)
}

async fn of_watch(
    server: &Server,
    answer: &str,
    args: &WhyArgs,
    scope: &Scope,
) -> Result<Exit, Failure> {
    let mut why: WhyWatch = decode(answer)?;
    if let Some(idle) = idle(server, &why.watch, scope).await? {
        why.reasons.insert(0, idle);
    }
    if args.json {
        style::print_value(&why)?;
    } else {
        let head = format!("watch {}", why.watch);
        style::say(&summary(&head, &why.reasons))?;
    }
    Ok(Exit::Done)
}

/// Returns the reason that timers of a watch are not started, which only systemd knows.
async fn idle(server: &Server, name: &str, scope: &Scope) -> Result<Option<Reason>, Failure> {
    let Some(timers) = timers::all(scope).await else {
        return Ok(None);
    };
    let watches: Vec<Watch> = server
        .ask(|| async { server.feature::<WatchesProxy<'_>>().await?.list(name).await })
        .await?;
    let mut problems = watches.iter().filter_map(|watch| timers.problem(watch, scope));
    Ok(problems.next().map(|text| Reason { code: "timers".to_owned(), text, until: None }))
}

/// Prints one sentence per line.
fn summary(head: &str, reasons: &[Reason]) -> String {
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
    use archivist_core::model::Lifecycle;

    #[test]
    fn reasons_of_this_machine_follow_those_of_the_fleet() {
        let why = |status, texts: &[&str]| Why {
            id: "s3".parse().unwrap(),
            status,
            reasons: texts
                .iter()
                .map(|text| Reason { code: "x".into(), text: (*text).into(), until: None })
                .collect(),
            node: Some("web1".into()),
        };
        let texts = |why: Why| why.reasons.into_iter().map(|reason| reason.text);
        let started = Lifecycle::Started;
        let both = joined(why(started, &["leased", "b"]), why(started, &["b", "c"]));
        assert!(texts(both).eq(["leased", "b", "c"]));
        let done = joined(why(Lifecycle::Sealed, &["done"]), why(started, &["running"]));
        assert!(texts(done).eq(["done"]));
        let sealed = Lifecycle::Sealed;
        let partial = joined(why(sealed, &["done on web1"]), why(sealed, &["missing", "skipped"]));
        assert!(texts(partial).eq(["missing", "skipped"]));
    }

    #[test]
    fn reasons_are_printed_one_per_line_and_cleaned() {
        let reason = |text: &str| Reason { code: "failed".into(), text: text.into(), until: None };
        let reasons = [reason("one"), reason("two\n\u{1b}[31mred")];
        let message = summary("s3 is queued", &reasons);
        assert!(message.starts_with("s3 is queued\none\ntwo"), "{message}");
        assert_eq!(message.lines().count(), 3);
        assert!(!message.contains('\u{1b}'));
    }
}
