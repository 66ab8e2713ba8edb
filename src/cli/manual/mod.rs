//! Manual pages and the installed configuration: files of prose in which request lines stand for
//! what the program defines, so that neither can differ from the program.
//!
//! | request | becomes |
//! |---|---|
//! | `.\" verbs` | a section for each verb, in the order of `--help` |
//! | `.\" hidden verbs` | an entry for each verb that `--help` does not list |
//! | `.\" options: VERB` | an entry for each option of a verb; of `archivist`, the general options |
//! | `.\" keys: SECTION` | an entry for each key of a section |
//! | `# defaults: SECTION` | a commented assignment for each key of a section |
//! | `.\" interface: NAME` | the methods and signals of an interface of the bus |
//! | `.\" members: NAME` | an entry for each of these that the page does not describe by hand |
//! | `.\" acts` | an entry for each kind of call of the interface for users: its callers, its methods, why |
//!
//! `verbs` and `keys` end at a line `.\" end`. In between, `.\" prose: NAME` begins prose by hand
//! about one verb or key, which follows the text in the code.

mod bus;
mod keys;
mod options;
mod roff;

use archivist_core::model::{Act, CALLS};
use bus::Member;
use clap::Command;
use keys::Key;
use roff::{Words, with_facts};
use std::collections::BTreeMap;
use std::path::Path;

/// Text by hand about verbs or keys, each with the number of its first line.
type Prose<'a> = BTreeMap<&'a str, (usize, String)>;

/// A page that is being made.
struct Page<'a> {
    command: &'a Command,
    /// Directory of the descriptions of the interfaces of the bus.
    interfaces: &'a Path,
    /// Keys of each file that have no place yet.
    files: Vec<Vec<Key>>,
    /// Number of the file that the page is about.
    file: Option<usize>,
    out: String,
}

/// Returns a page with all requests carried out.
///
/// # Errors
/// If a request is unknown or names what the program does not have.
pub fn page(template: &str, command: &Command, interfaces: &Path) -> Result<String, String> {
    let mut page = Page {
        command,
        interfaces,
        files: keys::all(),
        file: None,
        out: String::with_capacity(2 * template.len()),
    };
    let mut lines = (1..).zip(template.lines());
    while let Some((number, line)) = lines.next() {
        let done = match request(line) {
            None => page.line(line),
            Some("verbs") => prose(&mut lines).and_then(|prose| page.verbs(prose)),
            Some("hidden verbs") => page.hidden_verbs(),
            Some("acts") => page.acts(),
            Some(other) => match other.split_once(": ") {
                Some(("options", verb)) => page.options(verb),
                Some(("keys", section)) => {
                    prose(&mut lines).and_then(|prose| page.keys(section, prose))
                }
                Some(("defaults", section)) => page.defaults(section),
                Some(("interface", name)) => page.interface(name),
                Some(("members", name)) => page.members(name, template),
                _ => Err(format!("unknown request '{other}'")),
            },
        };
        done.map_err(|error| format!("line {number}: {error}"))?;
    }
    page.all_sections()?;
    Ok(page.out)
}

/// The request of a line, which looks like a comment of the file.
fn request(line: &str) -> Option<&str> {
    let of_configuration = || {
        let request = line.strip_prefix("# ")?;
        request.starts_with("defaults: ").then_some(request)
    };
    line.strip_prefix(".\\\" ").or_else(of_configuration)
}

/// Reads the prose by hand up to the end of a request.
fn prose<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Result<Prose<'a>, String> {
    let mut found = Prose::new();
    let mut current = None;
    for (number, line) in lines {
        match (request(line), current) {
            (Some("end"), _) => return Ok(found),
            (Some(other), _) => match other.strip_prefix("prose: ") {
                Some(name) if !found.contains_key(name) => {
                    found.insert(name, (number, String::new()));
                    current = Some(name);
                }
                Some(name) => return Err(format!("second prose about '{name}'")),
                None => return Err(format!("request '{other}' before the end of this one")),
            },
            (None, Some(name)) => {
                let (_, text) = found.entry(name).or_default();
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => return Err(format!("'{line}' is prose about nothing")),
        }
    }
    Err("no line '.\\\" end' after it".to_owned())
}

/// Refuses prose about what the program does not have.
fn all_used(prose: Prose<'_>) -> Result<(), String> {
    match prose.into_iter().next() {
        None => Ok(()),
        Some((name, (number, _))) => {
            Err(format!("prose about '{name}' (line {number}), which does not exist"))
        }
    }
}

/// Whether the head of an entry by hand names a member.
fn describes(template: &str, member: &str) -> bool {
    let mut heads = template.lines().filter_map(|line| line.strip_prefix(".BR "));
    heads.any(|head| head.split([' ', ',', '"']).any(|word| word == member))
}

impl Page<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        self.push(line);
        Ok(())
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Words of the text about a verb.
    fn words(&self, verb: &Command) -> Words {
        let mut words = Words::default();
        words.values.extend(options::values(verb));
        for verb in self.command.get_subcommands() {
            let below = verb.get_subcommands().map(Command::get_name);
            words.verbs.extend(below.chain([verb.get_name()]).map(str::to_owned));
        }
        words
    }

    fn options(&mut self, name: &str) -> Result<(), String> {
        let verb = match name {
            "archivist" => Some(self.command),
            _ => self.command.find_subcommand(name),
        };
        let verb = verb.ok_or_else(|| format!("there is no verb '{name}'"))?;
        let entries = options::entries(verb, &self.words(verb));
        self.out.push_str(&entries);
        Ok(())
    }

    fn verbs(&mut self, mut prose: Prose<'_>) -> Result<(), String> {
        for verb in self.command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let words = self.words(verb);
            let name = format!("archivist {}", verb.get_name());
            self.push(&format!(".SS {}", options::synopsis(&name, verb)));
            self.out.push_str(&options::about(verb, &words, ".PP\n"));
            let by_hand = prose.remove(verb.get_name());
            self.out.push_str(&by_hand.unwrap_or_default().1);
            self.out.push_str(&options::entries(verb, &words));
            for below in verb.get_subcommands().filter(|below| !below.is_hide_set()) {
                self.verb_below(verb, below, &mut prose);
            }
        }
        all_used(prose)
    }

    fn verb_below(&mut self, verb: &Command, below: &Command, prose: &mut Prose<'_>) {
        let words = self.words(below);
        let name = format!("{} {}", verb.get_name(), below.get_name());
        self.push(".TP");
        self.push(&options::synopsis(&format!("archivist {name}"), below));
        self.out.push_str(&options::about(below, &words, ".IP\n"));
        let by_hand = prose.remove(name.as_str());
        self.out.push_str(&by_hand.unwrap_or_default().1);
        let entries = options::entries(below, &words);
        if !entries.is_empty() {
            self.push(".RS");
            self.out.push_str(&entries);
            self.push(".RE");
        }
    }

    /// Takes the keys of a section out of those that have no place yet.
    fn take(&mut self, section: &str) -> Result<Vec<Key>, String> {
        let is_of = |key: &Key| key.section == section;
        let file = self.files.iter().position(|keys| keys.iter().any(is_of));
        let file = file.ok_or_else(|| format!("no keys of a section [{section}] are left"))?;
        self.file = Some(file);
        Ok(self.files[file].extract_if(.., |key| is_of(key)).collect())
    }

    /// Refuses a page about some sections of a file that leaves out others.
    fn all_sections(&self) -> Result<(), String> {
        let left = self.file.and_then(|file| self.files[file].first());
        match left {
            Some(key) => Err(format!("no place for the keys of section [{}]", key.section)),
            None => Ok(()),
        }
    }

    fn keys(&mut self, section: &str, mut prose: Prose<'_>) -> Result<(), String> {
        let words = self.words(self.command);
        for key in self.take(section)? {
            let default = Some(key.default).filter(|default| !default.is_empty());
            let default = default.map(|default| format!("Defaults to {default}."));
            let texts = with_facts(roff::paragraphs(key.text), default);
            self.push(&format!(".TP\n{}", roff::italic(&format!("{}=", key.name))));
            self.out.push_str(&roff::joined(&texts, &words, ".IP\n"));
            let by_hand = prose.remove(key.name);
            self.out.push_str(&by_hand.unwrap_or_default().1);
        }
        all_used(prose)
    }

    fn defaults(&mut self, section: &str) -> Result<(), String> {
        for key in self.take(section)? {
            self.push(&format!("#{}={}", key.name, key.default));
        }
        Ok(())
    }

    /// Returns the members of an interface.
    fn members_of(&self, name: &str) -> Result<Vec<Member>, String> {
        let file = self.interfaces.join(format!("{name}.xml"));
        let description = std::fs::read_to_string(&file)
            .map_err(|error| format!("failed to read '{}': {error}", file.display()))?;
        Ok(bus::members(name, &description))
    }

    fn interface(&mut self, name: &str) -> Result<(), String> {
        let members = self.members_of(name)?;
        self.push(&format!(".EX\ninterface {name}\nmethods:"));
        for (number, member) in members.iter().enumerate() {
            if member.is_signal && !members[..number].iter().any(|before| before.is_signal) {
                self.push("signals:");
            }
            self.push(&format!("  {}", member.notation()));
        }
        self.push(".EE");
        Ok(())
    }

    fn members(&mut self, name: &str, template: &str) -> Result<(), String> {
        for member in self.members_of(name)? {
            if describes(template, &member.name) {
                continue;
            }
            if member.text.is_empty() {
                return Err(format!("{name}.{} has no text", member.name));
            }
            let mut words = self.words(self.command);
            let names = member.arguments.iter().filter_map(|argument| argument.rsplit_once(' '));
            words.values.extend(names.map(|(_, name)| name.to_owned()));
            let texts = roff::paragraphs(&member.text);
            self.push(&format!(".TP\n{}()", roff::bold(&member.name)));
            self.out.push_str(&roff::joined(&texts, &words, ".IP\n"));
        }
        Ok(())
    }

    fn acts(&mut self) -> Result<(), String> {
        for act in Act::ALL {
            let calls = CALLS.iter().filter(|(_, of)| *of == act);
            let calls: Vec<&str> = calls.map(|(call, _)| *call).collect();
            self.push(&format!(".TP\n{}", roff::bold(&calls.join(", "))));
            self.push(&format!("May be called by: {}.", act.callers()));
            self.push(act.reason());
        }
        Ok(())
    }

    fn hidden_verbs(&mut self) -> Result<(), String> {
        for verb in self.command.get_subcommands().filter(|verb| verb.is_hide_set()) {
            let name = format!("archivist {}", verb.get_name());
            self.push(".TP");
            self.push(&options::synopsis(&name, verb));
            self.out.push_str(&options::about(verb, &self.words(verb), ".IP\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn make(template: &str) -> Result<String, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let interfaces = source.join("packaging/tree/usr/share/dbus-1/interfaces");
        page(template, &command(), &interfaces)
    }

    fn command() -> Command {
        let depth = Arg::new("depth").long("depth").value_name("N").default_value("0");
        let add = Command::new("add")
            .about("Archive URLs")
            .long_about("Archive URLs\n\nSee archivist watch list.\n\nA list has lines.")
            .arg(depth.help("Follow N links").conflicts_with("url"))
            .arg(Arg::new("url").value_name("URL").required(true));
        let json = Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
        let list = Command::new("list").about("List them").arg(json.help("Print JSON"));
        let watch = Command::new("watch").about("Manage watches").subcommand(list);
        let hidden = Command::new("hook").about("Run a hook").hide(true);
        Command::new("archivist").subcommands([add, watch.subcommand_required(true), hidden])
    }

    #[test]
    fn verbs_have_their_text_their_prose_and_their_options() {
        let template =
            "a\n.\\\" verbs\n.\\\" prose: watch\n.PP\nby hand\n.\\\" end\nb\n.\\\" hidden verbs\n";
        let expected = "\
a
.SS \\fBarchivist add\\fR [\\fB\\-\\-depth\\fR \\fIN\\fR] \\fIURL\\fR
Archive URLs. See \\fBarchivist\\fR \\fBwatch\\fR \\fBlist\\fR.
.PP
A list has lines.
.TP
\\fB\\-\\-depth\\fR \\fIN\\fR
Follow \\fIN\\fR links. Not with \\fIURL\\fR. Defaults to 0.
.SS \\fBarchivist watch\\fR \\fIVERB\\fR
Manage watches.
.PP
by hand
.TP
\\fBarchivist watch list\\fR [\\fB\\-\\-json\\fR]
List them.
.RS
.TP
\\fB\\-\\-json\\fR
Print JSON.
.RE
b
.TP
\\fBarchivist hook\\fR
Run a hook.
";
        assert_eq!(make(template).unwrap(), expected);
    }

    #[test]
    fn keys_have_their_text_their_default_and_their_prose() {
        let others = ".\\\" keys: Archive\n.\\\" end\n.\\\" keys: Hooks\n.\\\" end\n.\\\" keys: Orchestrator\n.\\\" end\n";
        let template =
            format!("{others}.\\\" keys: Fleet\n.\\\" prose: Store\n.IP\nby hand\n.\\\" end\n");
        let made = make(&template).unwrap();
        for part in [
            "\n.TP\n\\fIRetryMaxSec=\\fR\nMaximum delay between two attempts. Defaults to 1h.\n.TP\n",
            "there is no store.\n.IP\nby hand\n.TP\n\\fIKeepLocal=\\fR\n",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
    }

    #[test]
    fn members_of_the_bus_have_their_text() {
        let template = ".\\\" interface: org.archivist1.Manager\n.TP\n.BR Add \"(), \" Run ()\n";
        let made = make(template).unwrap();
        assert!(made.contains(".EX\ninterface org.archivist1.Manager\nmethods:\n  Add(in h urls, in s options, out s);\n"));
        assert!(made.contains(";\nsignals:\n  CrawlAdded(s id, s document);\n"), "{made}");
        let members = format!("{template}.\\\" members: org.archivist1.Manager\n");
        let error = make(&members).unwrap_err();
        assert_eq!(error, "line 4: org.archivist1.Manager.Install has no text");
        let error = make(".\\\" interface: org.archivist1.None\n").unwrap_err();
        assert!(error.starts_with("line 1: failed to read '"), "{error}");
    }

    #[test]
    fn configurations_show_every_default_once() {
        let section = |name: &str| format!("[{name}]\n# defaults: {name}\n");
        let all = ["Orchestrator", "Archive", "Hooks", "Fleet"].map(section);
        let made = make(&all.concat()).unwrap();
        assert!(made.contains("[Archive]\n#MinFreeSpace=1G\n#PluginPath=\n"), "{made}");
        let assignments = made.lines().filter(|line| line.starts_with('#'));
        assert_eq!(assignments.count(), archivist_config::keys::KEYS.len());
        let missing = make(&all[..3].concat()).unwrap_err();
        assert_eq!(missing, "no place for the keys of section [Fleet]");
        let twice = make(&all[0].repeat(2)).unwrap_err();
        assert_eq!(twice, "line 4: no keys of a section [Orchestrator] are left");
    }

    #[test]
    fn places_without_a_verb_and_unknown_requests_are_errors() {
        for (template, error) in [
            ("a\n.\\\" options: ad", "line 2: there is no verb 'ad'"),
            (
                ".\\\" verbs\n.\\\" prose: ad\n.\\\" end",
                "line 1: prose about 'ad' (line 2), which does not exist",
            ),
            (".\\\" verbs\n.\\\" prose: add\n.\\\" prose: add", "line 1: second prose about 'add'"),
            (".\\\" verbs\ntext", "line 1: 'text' is prose about nothing"),
            (".\\\" verbs", "line 1: no line '.\\\" end' after it"),
            (".\\\" verb", "line 1: unknown request 'verb'"),
        ] {
            assert_eq!(make(template).unwrap_err(), error);
        }
    }
}
