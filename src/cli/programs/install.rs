//! Has provider plugins install programs, and waits for them.

use super::{fetch, missing};
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::style::{self, Style};
use crate::progress::wait::{self, Form};
use archivist_config::Scope;
use archivist_core::model::CrawlId;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Added, Binary, Plugins};

/// Installs what these plugins and programs lack; without names, what all enabled plugins lack.
pub async fn run(names: &[String], dry_run: bool, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    if names.is_empty() || dry_run {
        return install_missing(&server, names, dry_run).await;
    }
    install(&server, names, names).await
}

/// Shows what the named plugins, or all enabled ones, lack, and has provider plugins install what
/// they can.
async fn install_missing(
    server: &Server,
    names: &[String],
    dry_run: bool,
) -> Result<Exit, Failure> {
    let binaries = fetch(server).await?;
    let plugins: Plugins = server.ask(|| server.proxy().plugins()).await?;
    let lacking = if names.is_empty() {
        missing::lacking(&binaries, &plugins)
    } else {
        missing::lacking_of(&binaries, &plugins, names)?
    };
    if lacking.is_empty() {
        style::say("the plugins have all their programs\n")?;
        return Ok(Exit::Done);
    }
    style::say(&missing::listed(&lacking, &Style::of_stdout()))?;
    if dry_run {
        return Ok(Exit::Done);
    }
    let installable = missing::installable(&lacking);
    if installable.is_empty() {
        return Ok(Exit::Failed);
    }
    let all: Vec<String> = lacking.iter().map(|binary| binary.name.clone()).collect();
    install(server, &installable, &all).await
}

/// Has provider plugins install programs, and prints where those of `shown` are.
async fn install(server: &Server, names: &[String], shown: &[String]) -> Result<Exit, Failure> {
    let answer = server.call_once(server.proxy().install(names)).await?;
    let added: Added = decode(&answer)?;
    if added.accepted > 0 {
        let programs = match added.accepted {
            1 => "1 program is".to_owned(),
            n => format!("{n} programs are"),
        };
        style::say(&format!("{programs} missing; looking for them as {}\n", added.crawl))?;
    }
    let watched = wait::wait(server, None, added.crawl, Form::of_terminal()).await?;
    if watched == Exit::Interrupted {
        return Ok(watched);
    }
    let listed = fetch(server).await?;
    let (lines, missing) = outcome(shown, &listed, added.crawl);
    style::say(&lines)?;
    Ok(if !missing { Exit::Done } else { Exit::Failed })
}

/// Returns a line with the location of each program, and whether one is missing.
pub fn outcome(names: &[String], binaries: &[Binary], crawl: CrawlId) -> (String, bool) {
    let asked = |binary: &&Binary| {
        let needed_by = |name: &String| {
            let mut plugins = binary.plugins.iter();
            plugins.any(|plugin| plugin.eq_ignore_ascii_case(name))
        };
        names.iter().any(|name| *name == binary.name || needed_by(name))
    };
    let (mut lines, mut missing) = (String::new(), false);
    for binary in binaries.iter().filter(asked) {
        let how = binary.missing.iter().map(|how| by_hand(how, crawl)).collect::<String>();
        missing |= binary.abspath.is_none() || binary.least.is_some();
        let what = match (&binary.abspath, &binary.least) {
            (Some(path), None) => path.clone(),
            (Some(path), Some(least)) => {
                let version = binary.version.as_deref().unwrap_or_default();
                format!("{path} is version {version}, but {least} or newer is required{how}")
            }
            (None, _) => format!("is missing{how}"),
        };
        lines += &format!("{}: {}\n", clean(&binary.name), clean(&what));
    }
    (lines, missing)
}

/// Returns the remaining steps, without the step that was just done.
fn by_hand(how: &str, crawl: CrawlId) -> String {
    if how.starts_with("archivist plugins install ") {
        format!("; see why: archivist logs {crawl}")
    } else {
        format!("; try: {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_lists_found_and_missing_programs() {
        let binary = |name: &str, path: Option<&str>, how: &str| Binary {
            name: name.into(),
            abspath: path.map(str::to_owned),
            missing: path.is_none().then(|| how.to_owned()),
            plugins: vec!["media".into()],
            ..Binary::default()
        };
        let listed = [
            binary("ffmpeg", None, "apt install ffmpeg"),
            binary("lit", None, "archivist plugins install media"),
            binary("yt-dlp", Some("/lib/yt-dlp"), ""),
        ];
        let (lines, missing) = outcome(&["Media".to_owned()], &listed, CrawlId(7));
        assert_eq!(
            lines,
            "ffmpeg: is missing; try: apt install ffmpeg\nlit: is missing; see why: archivist logs c7\nyt-dlp: /lib/yt-dlp\n"
        );
        assert!(missing);
        let (lines, missing) = outcome(&["yt-dlp".to_owned()], &listed, CrawlId(7));
        assert_eq!((lines.as_str(), missing), ("yt-dlp: /lib/yt-dlp\n", false));
    }
}
