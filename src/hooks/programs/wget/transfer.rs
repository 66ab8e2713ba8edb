//! The runs of wget for a page: the page itself, the pages to which it goes on, and requisites that
//! wget did not find.

use super::copy::PageCopy;
use super::judge::{Copied, last_error};
use super::warc::Warc;
use super::{WARC, command, file_size_limit, names, needs, unfinished};
use crate::certificates::client_certificate;
use crate::certificates::client_certificate::ClientCertificate;
use crate::page::html::one_line;
use crate::page::secrets::LeftOut;
use crate::process::capture::OutputLimits;
use crate::process::exit::{ExitReason, ProgramOutput};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::process::scratch::Scratch;
use crate::source::fetch;
use crate::visit;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use url::Url;

/// Pages that are visited if each goes on to the next by itself.
const HOPS_MAX: usize = 10;
/// Seconds after which a page must go on for the next one to be saved instead.
const REFRESH_MAX_SECS: u64 = 5;
/// Longest time of the request that explains a failure.
const EXPLAIN_MAX: Duration = Duration::from_secs(5);
/// Rounds in which requisites are fetched that wget did not find, and requests of a round.
const ROUNDS_MAX: usize = 4;
const ROUND_REQUESTS_MAX: usize = 1000;

/// The runs of wget that save a page.
pub struct Transfer<'a> {
    /// The hook's input.
    pub invocation: &'a Invocation,
    pub runner: ProgramRunner,
    /// Time for the work after the transfers.
    pub reserve: Duration,
    pub scratch: Scratch,
    pub warc: PathBuf,
    /// Log of the runs that saved files.
    pub log: String,
}

impl Transfer<'_> {
    pub fn save(&mut self, url: &Url) -> Result<(ProgramOutput, Copied), Finding> {
        let settings = &self.invocation.settings;
        let args = settings.list("WGET_ARGS");
        let has = |names: [&str; 2]| args.iter().any(|arg| names.contains(&arg.as_str()));
        let mut copied = Copied::default();
        let (mut ended, mut copy) = match self.continued(url) {
            Some(copy) => {
                let note = "continued the copy of an earlier attempt";
                copied.notes.push(note.to_owned());
                (ProgramOutput::succeeded(), copy)
            }
            None => {
                unfinished::forget();
                let mut command = self.command(url, &self.warc.clone())?;
                command.args(["--", url.as_str()]);
                let ended = self.execute(&mut command)?;
                self.log = ended.log.clone();
                let Ok(copy) = self.copy() else {
                    return Ok((ended, copied));
                };
                (ended, copy)
            }
        };
        let page = self.follow(url, &mut ended, &mut copy, &mut copied)?;
        let mut is_over = !matches!(ended.exit, ExitReason::Exited(_));
        if has(["--page-requisites", "-p"]) && !is_over {
            is_over = self.fetch_requisites(&page, &mut copy, has(["--span-hosts", "-H"]))?;
            if is_over {
                copied.notes.push("the time limit ended the transfer".to_owned());
            }
        }
        let is_whole = |response| copy.warc.is_whole(response).unwrap_or(false);
        copied.is_cut_off = copy.response(&page).is_some_and(|response| !is_whole(response));
        copied.is_cut_off |= copy.adopt(&page);
        let is_changed = copy.complete(&page, self.size_max());
        let file = copy.file(&page);
        let is_converted = matches!(ended.exit, ExitReason::Exited(_));
        if has(["--convert-links", "-k"]) && (is_changed || !is_converted || copy.has_conditions())
        {
            copy.convert(&page).map_err(|error| {
                Finding::failed(format!("failed to convert the links of the page: {error}"))
            })?;
        } else if let Some(file) = &file {
            names::name_original(file);
        }
        let needs = needs::of_page(&copy, &page);
        copied.status = match copy.response(&page) {
            None if copy.had_no_content(&page) => Some(204),
            response => response.map(|response| response.status),
        };
        copied.file = file.and_then(|file| file.into_os_string().into_string().ok());
        copied.absent = needs.absent.len();
        copied.notes.append(&mut copy.notes);
        copied.missing = needs.missing(is_over);
        copied.lacking = needs.lacking();
        if is_over && self.keeps_warc() && unfinished::has_page(url, &copy) {
            unfinished::record(url, &copy).map_err(|error| {
                Finding::failed(format!("failed to record what is missing: {error}"))
            })?;
        } else {
            unfinished::forget();
        }
        self.clean_warc()?;
        Ok((ended, copied))
    }

    /// Why the server did not answer, if it demands a client certificate: wget logs no reason, so
    /// curl requests the page.
    pub fn explain(&mut self, url: &Url) -> Option<&'static str> {
        // WGET_ARGS_EXTRA may select another way to the server.
        let has_arguments = !self.invocation.settings.list("WGET_ARGS_EXTRA").is_empty();
        if url.scheme() != "https" || has_arguments {
            return None;
        }
        let within = self.runner.remaining().min(EXPLAIN_MAX);
        let failure = fetch::get(&mut self.runner, self.invocation, url, 0, within).err()?;
        client_certificate::is_demanded(&failure.output_str)
            .then(|| client_certificate::reason(self.invocation))
    }

    /// The finding of the hook if the browser got no answer in this visit either, see
    /// [`visit::unanswered`].
    pub fn unanswered(&mut self) -> Option<Finding> {
        // WGET_ARGS_EXTRA may select another way to the server.
        if !self.invocation.settings.list("WGET_ARGS_EXTRA").is_empty() {
            return None;
        }
        self.shown_in_browser().ok()?;
        visit::unanswered(self.invocation)
    }

    /// The copy of an earlier attempt that was stopped before its end, if there is one.
    fn continued(&mut self, url: &Url) -> Option<PageCopy> {
        self.log = unfinished::log(url).filter(|_| self.keeps_warc())?;
        let found = self.copy().ok().filter(|copy| unfinished::has_page(url, copy));
        if found.is_none() {
            self.log.clear();
        }
        found
    }

    fn keeps_warc(&self) -> bool {
        self.warc == Path::new(WARC)
    }

    /// Address of the page that the browser shows in this visit, if it has a tab. `Err` if the hook
    /// was stopped.
    fn shown_in_browser(&mut self) -> Result<Option<Url>, Finding> {
        let left = self.runner.remaining().saturating_sub(self.reserve);
        let within = (left / 2).min(self.invocation.answer_time());
        let shown = visit::awaited_navigation(self.invocation, &mut self.runner, within)?;
        let url = shown.and_then(|shown| Url::parse(&shown.final_url).ok());
        Ok(url.filter(|url| matches!(url.scheme(), "http" | "https")).map(|mut url| {
            url.set_fragment(None);
            url
        }))
    }

    /// Saves the page to which the page goes on by itself (`Refresh` header or meta element, or a
    /// script if the browser shows where to), and so on. Returns the last one.
    fn follow(
        &mut self,
        url: &Url,
        ended: &mut ProgramOutput,
        copy: &mut PageCopy,
        copied: &mut Copied,
    ) -> Result<Url, Finding> {
        let mut page = url.clone();
        let mut visited = vec![url.clone()];
        for _ in 0..HOPS_MAX {
            visited
                .extend(copy.response(&page).and_then(|response| Url::parse(&response.url).ok()));
            let mut next = copy.refresh(&page, REFRESH_MAX_SECS);
            if next.is_none() && copy.departure(&page).is_some() {
                match self.shown_in_browser() {
                    Ok(shown) => next = shown,
                    Err(_) => ended.exit = ExitReason::HookStopped,
                }
            }
            let Some(next) = next.filter(|next| !visited.contains(next)) else {
                break;
            };
            if !matches!(ended.exit, ExitReason::Exited(_)) {
                break;
            }
            let shown = one_line(next.as_str(), 200);
            if !copy.has_document(&next) {
                self.fetch_page(&next, ended, copy)?;
            }
            if !copy.has_document(&next) {
                let reason = last_error(&ended.log).unwrap_or_else(|| "no answer".to_owned());
                let note = format!("the page goes on to {shown}, which was not saved: {reason}");
                copied.notes.push(note);
                break;
            }
            copied.notes.push(format!("the page went on to {shown}"));
            visited.push(next.clone());
            page = next;
        }
        if let Some(script) = copy.departure(&page) {
            copied.notes.push(script);
        }
        Ok(page)
    }

    fn fetch_page(
        &mut self,
        page: &Url,
        ended: &mut ProgramOutput,
        copy: &mut PageCopy,
    ) -> Result<(), Finding> {
        let part = self.scratch.path("next.warc.gz");
        let mut command = self.command(page, &part)?;
        command.args(["--", page.as_str()]);
        *ended = self.execute(&mut command)?;
        self.log += &ended.log;
        self.append(&part)?;
        if let Ok(read) = self.copy() {
            *copy = read;
        }
        Ok(())
    }

    /// Fetches what wget did not: it reads neither `image-set()` nor SVG, nor documents in an
    /// encoding that it did not ask for, and saves nothing if a file or directory is in the way.
    /// Returns whether it was stopped before the end.
    fn fetch_requisites(
        &mut self,
        page: &Url,
        copy: &mut PageCopy,
        other_hosts: bool,
    ) -> Result<bool, Finding> {
        let mut requested = HashSet::new();
        let mut is_over = false;
        for _ in 0..ROUNDS_MAX {
            let absent = needs::of_page(copy, page).absent;
            let mut wanted = absent
                .into_iter()
                .filter(|url| other_hosts || url.host() == page.host())
                .filter(|url| !requested.contains(url))
                .peekable();
            let Some(first) = wanted.peek().cloned() else {
                break;
            };
            // One run has a client certificate for all of its hosts, or for none.
            let has_certificate = self.certificate(&first)?.is_some();
            let is_alike = |url: &Url| {
                let found = self.certificate(url);
                found.is_ok_and(|found| found.is_some() == has_certificate)
            };
            let wanted: Vec<Url> = wanted.filter(is_alike).take(ROUND_REQUESTS_MAX).collect();
            requested.extend(wanted.iter().cloned());
            is_over |= self.runner.remaining() <= self.reserve;
            if is_over {
                break;
            }
            let lines: String = wanted.iter().map(|url| format!("{url}\n")).collect();
            let list = self.scratch.write("requisites", &lines)?;
            let part = self.scratch.path("requisites.warc.gz");
            let mut command = self.basic_command(&first, &part)?;
            command
                .args(["--tries=2", "--waitretry=2"])
                .arg(format!("--referer={page}"))
                .arg("--output-document")
                .arg(self.scratch.path("bodies"))
                .arg("--input-file")
                .arg(list);
            is_over = !matches!(self.execute(&mut command)?.exit, ExitReason::Exited(_));
            self.append(&part)?;
            match self.copy() {
                Ok(read) => *copy = read,
                Err(_) => break,
            }
        }
        Ok(is_over)
    }

    fn copy(&self) -> io::Result<PageCopy> {
        PageCopy::read(&self.warc, &self.log, self.size_max())
    }

    /// Largest size of the page in bytes.
    pub fn size_max(&self) -> u64 {
        match self.invocation.settings.size("WGET_MAX_SIZE") {
            0 => file_size_limit(),
            most => most.min(file_size_limit()),
        }
    }

    fn execute(&mut self, command: &mut Command) -> Result<ProgramOutput, Finding> {
        let limits = OutputLimits { output: 64 * 1024, ..OutputLimits::default() };
        self.runner.run_before(self.reserve, command, "wget", limits)
    }

    /// Appends a WARC file to that of the page, and removes it.
    fn append(&self, part: &Path) -> Result<(), Finding> {
        let appended = Warc::read(&self.warc).and_then(|warc| warc.cut()).and_then(|()| {
            let mut out = File::options().append(true).open(&self.warc)?;
            match File::open(part) {
                Ok(mut file) => io::copy(&mut file, &mut out).map(drop),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            }
        });
        let _ = fs::remove_file(part);
        appended.map_err(|error| Finding::failed(format!("failed to write '{WARC}': {error}")))
    }

    /// Removes the headers from the WARC file that are left out. A file that cannot be cleaned is removed.
    fn clean_warc(&self) -> Result<(), Finding> {
        let left_out = LeftOut::of_warc(&self.invocation.settings);
        Warc::read(&self.warc).and_then(|warc| warc.clean(left_out)).map_err(|error| {
            let _ = fs::remove_file(&self.warc);
            Finding::failed(format!("failed to remove secrets from '{WARC}': {error}"))
        })
    }

    /// The command that saves the page at `url`, without its last argument.
    fn command(&self, url: &Url, warc: &Path) -> Result<Command, Finding> {
        let mut command = self.basic_command(url, warc)?;
        let settings = &self.invocation.settings;
        command.args(settings.list("WGET_ARGS"));
        command.args(settings.list("WGET_ARGS_EXTRA"));
        if self.certificate(url)?.is_some_and(|found| !found.is_for_all()) {
            // Files of other hosts are fetched afterwards.
            command.arg("--no-span-hosts");
        }
        Ok(command)
    }

    fn certificate(&self, url: &Url) -> Result<Option<ClientCertificate>, Finding> {
        let found = client_certificate::of(self.invocation)?;
        Ok(found.filter(|found| found.is_for(url)))
    }

    /// The command without the arguments of the settings. `url` is one of those that it requests.
    fn basic_command(&self, url: &Url, warc: &Path) -> Result<Command, Finding> {
        let mut command = command(self.invocation, &self.scratch, self.runner.budget)?;
        if let Some(found) = self.certificate(url)? {
            command.arg("--certificate").arg(&found.certificate);
            command.arg("--private-key").arg(&found.key);
            if !found.is_for_all() {
                // wget would send the certificate to the host of a redirect, too.
                command.arg("--max-redirect=0");
            }
        }
        let name = warc.to_string_lossy();
        command.arg(format!("--warc-file={}", name.trim_end_matches(".warc.gz")));
        // wget prefers it to --warc-tempdir, and leaves a file there when it is killed early.
        command.env("TMPDIR", self.scratch.dir());
        Ok(command)
    }
}
