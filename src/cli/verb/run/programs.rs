//! Programs that are installed before the pages, on request: those of the plugins of the crawl, and those
//! of `Binary` records, which another archive had, if a plugin needs them here: a record could name
//! any software.

use crate::client::exit::{Exit, Failure};
use crate::client::hint::here;
use crate::client::server::{Server, decode};
use crate::client::stream::{CrawlJob, News, follow};
use crate::display::style;
use crate::programs::{fetch, install, missing};
use crate::queue::encode;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{AddOptions, Added, Binary, Draft};
use std::collections::BTreeSet;
use std::pin::pin;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

/// Prints which of these programs of records are missing here. With `may_install`, has provider plugins
/// install them, and what the plugins of a new crawl lack, and returns [`Exit::Partly`] if one is still
/// missing.
pub async fn settle(
    server: &Server,
    names: &BTreeSet<String>,
    may_install: bool,
    crawl: Option<&AddOptions>,
    interrupts: &mut Signal,
) -> Result<Exit, Failure> {
    let crawl = crawl.filter(|_| may_install);
    if names.is_empty() && crawl.is_none() {
        return Ok(Exit::Done);
    }
    let known = fetch(server).await?;
    let unknown = unknown(names, &known);
    if !unknown.is_empty() {
        let list = clean(&unknown.join(", "));
        eprintln!("ignored programs of records that no plugin needs: {list}");
    }
    let lacking = lacking(names, &known);
    if !may_install {
        eprint!("{}", here(&listed(&lacking)));
        return Ok(Exit::Done);
    }
    let draft: Draft = match crawl.map(encode).transpose()? {
        Some(options) => server.ask(|| server.proxy().draft(&options)).await?,
        None => Draft::default(),
    };
    let of_plugins = of_plugins(&draft, &known);
    let installable: BTreeSet<String> = missing::installable(&lacking)
        .into_iter()
        .chain(missing::installable(&of_plugins))
        .collect();
    let of_records = lacking.iter().map(|binary| binary.name.clone());
    let wanted: BTreeSet<String> = of_records.chain(installable.iter().cloned()).collect();
    if installable.is_empty() {
        eprint!("{}", here(&listed(&lacking)));
        return Ok(if lacking.is_empty() { Exit::Done } else { Exit::Partly });
    }
    let (wanted, installable) = (Vec::from_iter(wanted), Vec::from_iter(installable));
    let call = server.proxy().install(&installable);
    let crawl = decode::<Added>(&server.call_once(call).await?)?.crawl;
    eprintln!("installing {} as {crawl}", clean(&installable.join(", ")));
    let job = CrawlJob { crawl, only: BTreeSet::new(), owned: true, hold: None };
    tokio::select! {
        done = until_the_end(server, &job) => done?,
        // The descriptor closes, and the orchestrator cancels the installation.
        _ = interrupts.recv() => return Ok(Exit::Interrupted),
    }
    let (lines, is_missing) = install::outcome(&wanted, &fetch(server).await?, crawl);
    eprint!("{}", here(&lines));
    Ok(if is_missing { Exit::Partly } else { Exit::Done })
}

async fn until_the_end(server: &Server, job: &CrawlJob) -> Result<(), Failure> {
    let id = job.crawl.to_string();
    let hold = server.call(|| server.proxy().hold(&id, job.owned)).await?;
    let (sender, mut news) = mpsc::unbounded_channel();
    let mut following = pin!(follow(server, job, Some(hold.into()), sender));
    loop {
        tokio::select! {
            Some((_, news)) = news.recv() => if let News::Waits(line) = news {
                style::note(&line);
            },
            done = &mut following => return done,
        }
    }
}

/// Returns the names that no plugin needs here.
fn unknown(names: &BTreeSet<String>, known: &[Binary]) -> Vec<String> {
    let is_unknown = |name: &&String| known.iter().all(|binary| binary.name != **name);
    names.iter().filter(is_unknown).cloned().collect()
}

/// Returns the programs of these names that are missing or too old.
fn lacking<'a>(names: &BTreeSet<String>, known: &'a [Binary]) -> Vec<&'a Binary> {
    let is_named = |binary: &&Binary| names.contains(&binary.name);
    known.iter().filter(is_unusable).filter(is_named).collect()
}

/// Returns the programs that are missing or too old for plugins whose hooks would otherwise run.
fn of_plugins<'a>(draft: &Draft, known: &'a [Binary]) -> Vec<&'a Binary> {
    let skips = || draft.skipped.iter().filter(|skip| skip.program.is_some());
    let is_needed = |binary: &&Binary| {
        let mut skips = skips();
        skips.any(|skip| {
            skip.program.as_ref() == Some(&binary.name) || binary.plugins.contains(&skip.plugin)
        })
    };
    known.iter().filter(is_unusable).filter(is_needed).collect()
}

fn is_unusable(binary: &&Binary) -> bool {
    binary.abspath.is_none() || binary.least.is_some()
}

/// Returns a line for each program with the command that installs it.
fn listed(lacking: &[&Binary]) -> String {
    let lines = lacking.iter().map(|binary| {
        let what = match (&binary.abspath, &binary.least) {
            (Some(_), Some(least)) => format!("is older than {least}"),
            _ => "is missing".to_owned(),
        };
        let how = match &binary.missing {
            Some(how) => format!("; to install it: {how}"),
            None => String::new(),
        };
        let line = format!("program '{}' of a record {what}{how}", binary.name);
        format!("{}\n", clean(&line))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::bus::documents::report::DraftSkip;

    #[test]
    fn missing_programs_are_listed_with_their_command() {
        let binary = |name: &str, path: Option<&str>, least: Option<&str>| Binary {
            name: name.into(),
            abspath: path.map(str::to_owned),
            least: least.map(str::to_owned),
            missing: Some(format!("apt install {name}")),
            ..Binary::default()
        };
        let known = [
            binary("git", None, None),
            binary("node", Some("/bin/node"), Some("22")),
            binary("other", None, None),
            binary("wget", Some("/bin/wget"), None),
        ];
        let names = BTreeSet::from(["git", "node", "odd", "wget"].map(str::to_owned));
        assert_eq!(unknown(&names, &known), ["odd"]);
        let skip = |plugin: &str, program: Option<&str>| DraftSkip {
            plugin: plugin.into(),
            why: String::new(),
            program: program.map(str::to_owned),
        };
        let mut of_media = known.to_vec();
        of_media[2].plugins = vec!["media".into()];
        let draft = |skipped| Draft { skipped, ..Draft::default() };
        let found = |skipped| -> Vec<String> {
            let found = of_plugins(&draft(skipped), &of_media);
            found.iter().map(|binary| binary.name.clone()).collect()
        };
        assert_eq!(
            found(vec![skip("media", Some("git")), skip("x", Some("wget"))]),
            ["git", "other"]
        );
        assert!(found(vec![skip("media", None)]).is_empty(), "disabled");
        assert_eq!(
            listed(&lacking(&names, &known)),
            "program 'git' of a record is missing; to install it: apt install git\n\
             program 'node' of a record is older than 22; to install it: apt install node\n"
        );
    }
}
