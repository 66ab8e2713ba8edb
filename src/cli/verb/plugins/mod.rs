//! `archivist plugins`: lists the plugins, why some do not run, and what to do about it.

mod abx;
mod add;
mod binaries;
mod drop_in;
pub mod install;
mod named;
mod unit;

use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use crate::programs;
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Plugins, Uses};
use clap::{Args, Subcommand};

/// List the plugins, and why some do not run
///
/// The list has the hooks of each plugin, the number of completed and failed runs, and the reason
/// if a plugin cannot run. With names, list only these plugins; of a single one, also print its
/// directory, what it requires, the types of its output, and its settings with their defaults.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PluginsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List the programs that plugins require instead
    ///
    /// The list has version, SHA-256, path, provider, and the number of completed and failed runs
    /// of the plugins that use the program; or, for a missing program, how to install it. A file is
    /// inspected again when it changes, and after 24 hours.
    #[arg(long)]
    binaries: bool,
    /// Install the programs that these plugins lack, or without names those that the enabled
    /// plugins lack
    ///
    /// The same as archivist plugins install with these names, or with --missing.
    #[arg(short, long, conflicts_with_all = ["json", "binaries"])]
    install: bool,
    /// With --install, only list the missing programs, the plugins that need them, and how to
    /// install them
    #[arg(long, requires = "install")]
    dry_run: bool,
    /// Only these plugins; a single one with its settings
    #[arg(value_name = "NAME", conflicts_with = "binaries")]
    names: Vec<String>,
    #[command(subcommand)]
    verb: Option<PluginsVerb>,
}

#[derive(Subcommand)]
enum PluginsVerb {
    Install(install::InstallArgs),
    Add(add::PluginAddArgs),
    Remove(add::RemoveArgs),
}

pub async fn run(args: PluginsArgs, scope: &Scope) -> Result<Exit, Failure> {
    match args.verb {
        Some(PluginsVerb::Install(args)) => return install::run(args, scope).await,
        Some(PluginsVerb::Add(args)) => return add::add(args, scope).await,
        Some(PluginsVerb::Remove(args)) => return add::remove(args, scope).await,
        None => {}
    }
    if args.install {
        return programs::install::run(&args.names, args.dry_run, scope).await;
    }
    if args.binaries {
        return binaries::run(args.json, scope).await;
    }
    let server = Server::reach(scope).await?;
    let answer = server.call(|| server.proxy().plugins()).await?;
    let mut plugins: Plugins = decode(&answer)?;
    named::select(&mut plugins, &args.names)?;
    if args.json {
        style::print_json(&named::document(&answer, &plugins)?)?;
        return Ok(Exit::Done);
    }
    let style = Style::of_stdout();
    style::say(&listed(&plugins, &style))?;
    if let ([plugin], [_]) = (&plugins.plugins[..], &args.names[..]) {
        style::say(&format!("\n{}", named::details(plugin, &style)))?;
    }
    for problem in &plugins.problems {
        eprintln!("{}: {}", clean(&problem.path), clean(&problem.what));
    }
    Ok(Exit::Done)
}

/// Returns a number of uses; empty for 0.
fn times(count: u64) -> String {
    match count {
        0 => String::new(),
        count => count.to_string(),
    }
}

fn used(uses: &Uses) -> Cell {
    times(uses.succeeded + uses.failed).into()
}

fn failed(uses: &Uses) -> Cell {
    Cell::toned(times(uses.failed), Tone::Bad)
}

fn listed(plugins: &Plugins, style: &Style) -> String {
    let mut table = Table::new("PLUGIN  RUNS  USED?  FAILED  HOOKS…?  WHY NOT…  DESCRIPTION…");
    for plugin in &plugins.plugins {
        let hooks: Vec<_> = plugin.hooks.iter().map(|hook| text::short_hook(hook)).collect();
        table.row([
            plugin.name.as_str().into(),
            match (&plugin.skipped, hooks.is_empty()) {
                (Some(_), _) => Cell::toned("no", Tone::Bad),
                (None, true) => Cell::toned("-", Tone::Dim),
                (None, false) => Cell::toned("yes", Tone::Good),
            },
            used(&plugin.uses),
            failed(&plugin.uses),
            hooks.join(" ").into(),
            plugin.skipped.as_deref().unwrap_or_default().into(),
            plugin.description.as_str().into(),
        ]);
    }
    if table.is_empty() { "no plugins\n".to_owned() } else { table.render(style) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Plugin;

    #[test]
    fn skipped_plugins_are_listed_with_a_reason() {
        let plugin = |name: &str, skipped: Option<&str>| Plugin {
            name: name.into(),
            directory: format!("/usr/share/archivist/plugins/{name}"),
            description: format!("Makes a {name}"),
            hooks: vec![format!("on_Snapshot__50_{name}")],
            skipped: skipped.map(str::to_owned),
            by_choice: false,
            fix: None,
            uses: Uses { succeeded: 7, failed: u64::from(name == "pdf") },
        };
        let plugins = Plugins {
            plugins: vec![
                plugin("pdf", Some("chromium is not installed: apt install chromium")),
                plugin("wget", None),
            ],
            problems: Vec::new(),
        };
        assert_eq!(
            listed(&plugins, &Style::plain(Time(0))),
            "PLUGIN  RUNS  USED  FAILED  HOOKS  WHY NOT                                          DESCRIPTION\n\
             pdf     no    8     1       pdf    chromium is not installed: apt install chromium  Makes a pdf\n\
             wget    yes   7             wget                                                    Makes a wget\n"
        );
    }
}
