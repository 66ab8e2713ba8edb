//! Programs of `Binary` records, which another archive had. They are installed only on request, and
//! only if a plugin needs them here: a record could name any software.

use super::stream::{Job, follow};
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::verb::plugins::{binaries, install, missing};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Added, Binary};
use std::collections::BTreeSet;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

/// Prints which of these programs are missing here. With `may_install`, has provider plugins
/// install them, and returns [`Exit::Partly`] if one is still missing.
pub async fn settle(
    server: &Server,
    names: &BTreeSet<String>,
    may_install: bool,
    interrupts: &mut Signal,
) -> Result<Exit, Failure> {
    if names.is_empty() {
        return Ok(Exit::Done);
    }
    let known = binaries::fetch(server).await?;
    let unknown = unknown(names, &known);
    if !unknown.is_empty() {
        let list = clean(&unknown.join(", "));
        eprintln!("ignored programs of records that no plugin needs: {list}");
    }
    let lacking = lacking(names, &known);
    if !may_install {
        eprint!("{}", listed(&lacking));
    }
    if lacking.is_empty() || !may_install {
        return Ok(Exit::Done);
    }
    let wanted: Vec<String> = lacking.iter().map(|binary| binary.name.clone()).collect();
    let installable = missing::installable(&lacking);
    if installable.is_empty() {
        eprint!("{}", listed(&lacking));
        return Ok(Exit::Partly);
    }
    let call = server.proxy().install(&installable);
    let crawl = decode::<Added>(&server.call_once(call).await?)?.crawl;
    eprintln!("installing {} as {crawl}", clean(&installable.join(", ")));
    let job = Job { crawl, only: BTreeSet::new(), owned: true, hold: None };
    tokio::select! {
        done = until_the_end(server, &job) => done?,
        // The descriptor closes, and the orchestrator cancels the installation.
        _ = interrupts.recv() => return Ok(Exit::Interrupted),
    }
    let (lines, is_missing) = install::outcome(&wanted, &binaries::fetch(server).await?, crawl);
    eprint!("{lines}");
    Ok(if is_missing { Exit::Partly } else { Exit::Done })
}

async fn until_the_end(server: &Server, job: &Job) -> Result<(), Failure> {
    let id = job.crawl.to_string();
    let hold = server.call(|| server.proxy().hold(&id, job.owned)).await?;
    let (sender, _ignored) = mpsc::unbounded_channel();
    follow(server, job, hold.into(), sender).await
}

/// Returns the names that no plugin needs here.
fn unknown(names: &BTreeSet<String>, known: &[Binary]) -> Vec<String> {
    let is_unknown = |name: &&String| known.iter().all(|binary| binary.name != **name);
    names.iter().filter(is_unknown).cloned().collect()
}

/// Returns the programs of these names that are missing or too old.
fn lacking<'a>(names: &BTreeSet<String>, known: &'a [Binary]) -> Vec<&'a Binary> {
    let is_lacking = |binary: &&Binary| {
        let unusable = binary.abspath.is_none() || binary.least.is_some();
        unusable && names.contains(&binary.name)
    };
    known.iter().filter(is_lacking).collect()
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
        assert_eq!(
            listed(&lacking(&names, &known)),
            "program 'git' of a record is missing; to install it: apt install git\n\
             program 'node' of a record is older than 22; to install it: apt install node\n"
        );
    }
}
