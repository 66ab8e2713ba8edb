//! `archivist add`: queues a crawl, and with `--wait` follows it.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::linger::logout_hint;
use crate::client::server::{Server, decode};
use crate::display::{listing, style};
use crate::progress::wait::{self, Form};
use crate::queue::urls::Urls;
use crate::queue::{encode, persona, same_host, setting, summary};
use archivist_config::Scope;
use archivist_core::model::{CrawlId, PersonaName};
use archivist_shared::bus::documents::report::{AddOptions, Added};
use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Crawl of the first `add` of an archive.
const FIRST_CRAWL: CrawlId = CrawlId(1);

/// Archive URLs: queue a crawl of these pages
///
/// For each URL that cannot be archived, the command prints the argument or line and the reason; it
/// queues the other URLs. When the command returns, the crawl is stored in the database and
/// survives a power cut.
#[derive(Args)]
pub struct AddArgs {
    /// Follow links up to N steps from the given pages, also to other hosts
    ///
    /// These pages are part of the same crawl. At most 4. See --same-host.
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: u32,
    /// Follow links only to pages on the host of the page that has them
    ///
    /// Ports and www. make no difference; other subdomains are other hosts. The given pages may be on
    /// different ones, and the entries of a given feed must be on its own. Equivalent to
    /// --set CRAWL_SAME_HOST=true.
    #[arg(long)]
    same_host: bool,
    /// Tag the given pages; may be given more than once
    ///
    /// Pages that are found from them are not tagged, because a tag says what a user chose; entries of a feed
    /// have its categories. archivist list snapshots CRAWL lists all pages of a crawl.
    #[arg(long = "tag", value_name = "T")]
    tags: Vec<String>,
    /// Run only these plugins, separated by commas
    ///
    /// They replace those of Plugins= in archivist.conf(5). A MIME type such as application/pdf or
    /// image/ selects the plugins that produce files of this type. A plugin that was installed
    /// after the last reload is found.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    plugins: Vec<String>,
    /// Set a setting of a plugin for this crawl, such as WGET_TIMEOUT=30; may be given more than
    /// once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Use the cookies and the browser profile of this persona, see archivist persona
    ///
    /// Equivalent to --set ACTIVE_PERSONA=NAME.
    #[arg(long, value_name = "NAME")]
    persona: Option<PersonaName>,
    /// Leave out pages that another crawl has archived or is going to
    ///
    /// Pages that this crawl finds are left out in the same way. A page that was not saved, because it did
    /// not load, shows an error or is incomplete, or whose files are gone, is archived again. The newest snapshot of a page that is
    /// left out gets the tags of its line in a list, and the title and the date if it has none. If none is
    /// left, no crawl is added, and the
    /// exit status is 0. In a fleet, the pages of all machines count; if only other machines have
    /// them, the crawl is added and sealed without pages.
    #[arg(long)]
    only_new: bool,
    /// Accepted for scripts that give this option to abx-dl
    ///
    /// archivist add installs nothing, and a crawl skips hooks whose programs are missing; archivist run
    /// --install installs them first.
    #[arg(long)]
    no_install: bool,
    /// Read a list of URLs from FILE: one per line, a bookmark file of a browser, a table or JSON
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show the progress until the crawl is sealed or cancelled
    ///
    /// A terminal shows a bar and the running pages, other output has one line per event. If the
    /// orchestrator or the bus restarts in the meantime, the command reconnects and continues.
    /// 'Ctrl-C' detaches: the crawl continues, and the exit status is 130.
    #[arg(long)]
    wait: bool,
    /// Print the answer as JSON
    ///
    /// With --wait, print the answer and then every event, one JSON document per line.
    #[arg(long)]
    json: bool,
    /// Pages to archive; a single - reads a list of URLs from standard input
    #[arg(value_name = "URL", required_unless_present = "file")]
    urls: Vec<OsString>,
}

pub async fn run(args: AddArgs, scope: &Scope) -> Result<Exit, Failure> {
    let urls = collect(&args)?;
    for rejected in &urls.rejected {
        eprintln!("{rejected}");
    }
    if urls.is_empty() {
        return Err(Failure::usage("no URL to archive"));
    }
    let server = Server::reach(scope).await?;
    let (added, refused) = submit(&args, &urls, &server).await?;
    let so_far = if refused { Exit::Partly } else { Exit::Done };
    if added.accepted == 0 && added.known > 0 {
        return Ok(so_far);
    }
    if added.crawl == FIRST_CRAWL
        && let Some((what, fix)) = logout_hint(scope)
    {
        eprintln!("{what}; to continue without a session, also after a boot: {fix}");
    }
    if added.accepted == 0 {
        return Err(Failure::usage("no URL that can be archived"));
    }
    if !args.wait {
        return Ok(so_far);
    }
    let form = if args.json { Form::Json } else { Form::of_terminal() };
    let fleet = Fleet::reach(scope, Local::default()).await?;
    match wait::wait(&server, fleet.as_ref(), added.crawl, form).await? {
        Exit::Done => Ok(so_far),
        other => Ok(other),
    }
}

fn collect(args: &AddArgs) -> Result<Urls, Failure> {
    let mut urls = Urls::default();
    let mut formats = Vec::new();
    for (number, argument) in (1..).zip(&args.urls) {
        if argument == "-" {
            formats.extend(urls.add_list(std::io::stdin().lock(), "standard input")?);
        } else {
            urls.add_argument(number, argument);
        }
    }
    if let Some(path) = &args.file {
        let name = format!("'{}'", path.display());
        let file = File::open(path)
            .map_err(|error| Failure::failed(format!("failed to read {name}: {error}")))?;
        formats.extend(urls.add_list(file, &name)?);
    }
    for format in formats {
        eprintln!("{format}");
    }
    Ok(urls)
}

/// Queues the crawl and prints which URLs were refused; returns whether any was.
async fn submit(args: &AddArgs, urls: &Urls, server: &Server) -> Result<(Added, bool), Failure> {
    let options = encode(&AddOptions {
        depth: args.depth,
        tags: args.tags.clone(),
        plugins: args.plugins.clone(),
        config: persona(args.persona.as_ref())
            .chain(same_host(args.same_host))
            .chain(args.settings.iter().cloned())
            .collect(),
        only_new: args.only_new,
    })?;
    let memfd = urls.to_memfd()?;
    let call = server.proxy().add(memfd.as_fd().into(), &options);
    let answer = server.call_with_urls(urls.len(), call).await?;
    let added: Added = decode(&answer)?;
    listing::report(&added.refused, |refused| urls.located(refused.clone()).to_string());
    if args.json && args.wait {
        style::print_document(&format!("{}\n", answer.trim_end()))?;
    } else if args.json {
        style::print_json(&answer)?;
    } else {
        style::print(&format!("{}\n", summary(&added)))?;
    }
    let refused = !added.refused.is_empty() || !urls.rejected.is_empty();
    Ok((added, refused))
}
