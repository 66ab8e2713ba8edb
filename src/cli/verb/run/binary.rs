//! `archivist run --binary-id ID`: has provider plugins install one program, in the foreground. An
//! installation is a crawl without pages, so that it is held, shown and cancelled like every other.

use super::{RunArgs, interrupts, until_the_end};
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::client::stream::CrawlJob;
use crate::display::style;
use crate::programs;
use crate::programs::install::outcome;
use archivist_config::Scope;
use archivist_core::text::{clean, did_you_mean, similar};
use archivist_shared::bus::documents::report::{Added, Binary};
use std::collections::BTreeSet;

/// Installs the program `id`, unless a sufficient version is installed.
pub async fn run(id: &str, args: &RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut interrupts = interrupts()?;
    let server = Server::reach(scope).await?;
    if let Some(path) = installed(id, &programs::fetch(&server).await?)? {
        eprintln!("{id} is installed: {path}");
        return Ok(Exit::Done);
    }
    let since = style::now();
    let names = [id.to_owned()];
    let answer = server.call_once(server.proxy().install(&names)).await?;
    let crawl = decode::<Added>(&answer)?.crawl;
    let text = crawl.to_string();
    let hold = server.call(|| server.proxy().hold(&text, true)).await?;
    let jobs =
        vec![CrawlJob { crawl, only: BTreeSet::new(), owned: true, hold: Some(hold.into()) }];
    let ended = until_the_end(jobs, since, args, &server, scope, &mut interrupts).await?;
    match ended {
        None | Some(Exit::Interrupted) => return Ok(Exit::Interrupted),
        // A provider may fail before another one succeeds.
        Some(_) => {}
    }
    let (lines, is_missing) = outcome(&names, &programs::fetch(&server).await?, crawl);
    eprint!("{lines}");
    Ok(if is_missing { Exit::Failed } else { Exit::Done })
}

/// The path of an installed program; None if it is missing, or older than a plugin requires.
///
/// # Errors
/// If no plugin needs a program of this name.
fn installed<'a>(id: &str, binaries: &'a [Binary]) -> Result<Option<&'a str>, Failure> {
    let Some(binary) = binaries.iter().find(|binary| binary.name == id) else {
        let similar = similar(id, binaries.iter().map(|binary| binary.name.as_str()));
        let hint = did_you_mean(&similar);
        return Err(Failure::usage(format!(
            "no plugin needs a program '{}'{hint}; see: archivist plugins --binaries",
            clean(id)
        )));
    };
    let path = binary.abspath.as_deref();
    Ok(path.filter(|_| binary.least.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_and_old_programs_that_a_plugin_needs_are_installed() {
        let binary = |name: &str, path: Option<&str>, least: Option<&str>| Binary {
            name: name.into(),
            abspath: path.map(str::to_owned),
            least: least.map(str::to_owned),
            ..Binary::default()
        };
        let binaries = [
            binary("wget", Some("/usr/bin/wget"), None),
            binary("node", Some("/usr/bin/node"), Some("22")),
            binary("yt-dlp", None, None),
        ];
        let of = |id| installed(id, &binaries).map_err(|failure| failure.exit());
        assert_eq!(of("wget"), Ok(Some("/usr/bin/wget")));
        assert_eq!(of("node"), Ok(None));
        assert_eq!(of("yt-dlp"), Ok(None));
        assert_eq!(of("yt-dl"), Err(Exit::Usage));
    }
}
