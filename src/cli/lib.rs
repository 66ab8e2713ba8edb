//! The command line. Each verb is one file: it parses its arguments, makes one call over the bus
//! and prints the answer.

mod client;
mod display;
mod verb;

#[cfg(test)]
mod sample;

pub use client::exit::Exit;

use archivist_config::{INSTANCE_ALLOWED, Scope, is_instance_name};
use clap::{Args, CommandFactory, Parser, Subcommand};
use client::exit::Failure;
use std::process::ExitCode;
use verb::{
    add, backup, cancel, check, completions, config, doctor, fleet, fsck, generate, heartbeat,
    hook, list, logs, open, orchestrator, pause, persona, plot, plugins, pool, restore, resume,
    retry, run, show, status, update, watch, why,
};

#[derive(Parser)]
#[command(
    name = "archivist",
    version,
    about = "Archive web pages; every worker and every hook is a systemd unit",
    after_help = client::exit::HELP,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Args)]
struct ScopeArgs {
    /// Use the orchestrator of your own service manager instead of the machine's
    #[arg(long, global = true)]
    user: bool,
    /// Use the instance NAME, which has its own queue and data directory
    #[arg(long, global = true, value_name = "NAME", value_parser = instance)]
    instance: Option<String>,
}

#[derive(Subcommand)]
enum Verb {
    /// Archive URLs
    Add(add::AddArgs),
    /// Archive in the foreground: show the hooks, interrupt them, cancel the work on exit
    Run(run::RunArgs),
    /// Show the state of the orchestrator, or of one crawl or snapshot
    Status(status::StatusArgs),
    /// List crawls, snapshots, results, runs or web hosts
    List(list::ListArgs),
    /// Show everything about a crawl or snapshot
    Show(show::ShowArgs),
    /// Draw the units of a crawl or snapshot over time, as SVG on standard output
    Plot(plot::PlotArgs),
    /// Explain why a crawl, snapshot, run or watch is not done, or failed
    Why(why::WhyArgs),
    /// Open the page about a crawl, a snapshot or the whole archive in the browser
    Open(open::OpenArgs),
    /// Show the journal of a crawl, snapshot or hook
    Logs(logs::LogsArgs),
    /// Cancel crawls or snapshots and stop their running hooks
    Cancel(cancel::CancelArgs),
    /// Pause crawls or snapshots and freeze their running hooks
    Pause(pause::PauseArgs),
    /// Resume paused crawls and snapshots
    Resume(resume::ResumeArgs),
    /// Queue failed and skipped results again
    Retry(retry::RetryArgs),
    /// Run hooks that archived pages have no result of, such as those of new plugins
    Update(update::UpdateArgs),
    /// Manage watches: list, add and remove them, run their checks, show the results
    Watch(watch::WatchArgs),
    /// List the plugins, and why some do not run
    Plugins(plugins::PluginsArgs),
    /// Install programs that plugins need; short for plugins install
    Install(plugins::install::InstallVerbArgs),
    /// Manage personas: browser profiles and cookies for crawls
    Persona(persona::PersonaArgs),
    /// Manage pools of workers
    Pool(pool::PoolArgs),
    /// Send a heartbeat from a worker of a pool
    Heartbeat,
    /// Manage the fleet: several machines with one archive, over a PostgreSQL database
    Fleet(fleet::FleetArgs),
    /// Back up database, archive and configuration, while work runs
    Backup(backup::BackupArgs),
    /// Restore a backup
    Restore(restore::RestoreArgs),
    /// Check this machine and print how to fix what is missing
    Doctor(doctor::DoctorArgs),
    /// Compare the rows of crawls and pages with the files of the archive
    Fsck(fsck::FsckArgs),
    /// Show the configuration in effect and where each value comes from
    Config(config::ConfigArgs),
    /// Show the units that archivist-generator makes from pools and watches
    Generate(generate::GenerateArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Run the orchestrator (what archivist-orchestrator.service starts)
    #[command(hide = true)]
    Orchestrator(orchestrator::OrchestratorArgs),
    /// Run the program of a built-in plugin
    #[command(hide = true)]
    Hook(hook::HookArgs),
    /// Run one check of one site (what watches run)
    #[command(hide = true)]
    Check(check::CheckArgs),
}

fn instance(text: &str) -> Result<String, String> {
    if is_instance_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("an instance name must be {INSTANCE_ALLOWED}"))
    }
}

/// Returns the definition of the command line, for completions and the test of the man pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the verb that the arguments of the process name.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let scope = Scope::from_env(cli.scope.user, cli.scope.instance, |name| {
        std::env::var_os(name)
    });
    let done = match cli.verb {
        Verb::Hook(args) => return hook::run(args),
        Verb::Add(args) => wait_for(add::run(args, &scope)),
        Verb::Run(args) => wait_for(run::run(args, &scope)),
        Verb::Status(args) => wait_for(status::run(args, &scope)),
        Verb::List(args) => wait_for(list::run(args, &scope)),
        Verb::Show(args) => wait_for(show::run(args, &scope)),
        Verb::Plot(args) => wait_for(plot::run(args, &scope)),
        Verb::Why(args) => wait_for(why::run(args, &scope)),
        Verb::Open(args) => wait_for(open::run(args, &scope)),
        Verb::Logs(args) => wait_for(logs::run(args, &scope)),
        Verb::Cancel(args) => wait_for(cancel::run(args, &scope)),
        Verb::Pause(args) => wait_for(pause::run(args, &scope)),
        Verb::Resume(args) => wait_for(resume::run(args, &scope)),
        Verb::Retry(args) => wait_for(retry::run(args, &scope)),
        Verb::Update(args) => wait_for(update::run(args, &scope)),
        Verb::Watch(args) => wait_for(watch::run(args, &scope)),
        Verb::Plugins(args) => wait_for(plugins::run(args, &scope)),
        Verb::Install(args) => wait_for(plugins::install::run_verb(args, &scope)),
        Verb::Persona(args) => persona::run(args, &scope),
        Verb::Pool(args) => wait_for(pool::run(args, &scope)),
        Verb::Heartbeat => heartbeat::run(),
        Verb::Fleet(args) => wait_for(fleet::run(args, &scope)),
        Verb::Backup(args) => backup::run(args, &scope),
        Verb::Restore(args) => wait_for(restore::run(args, &scope)),
        Verb::Doctor(args) => wait_for(doctor::run(args, &scope)),
        Verb::Fsck(args) => wait_for(fsck::run(args, &scope)),
        Verb::Config(args) => config::run(args, &scope),
        Verb::Generate(args) => generate::run(args, &scope),
        Verb::Completions(args) => completions::run(args),
        Verb::Check(args) => check::run(args, &scope),
        Verb::Orchestrator(args) => orchestrator::run(args, &scope),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => failure.in_scope(&scope).report(),
    }
}

/// Runs one verb on its own tokio runtime.
fn wait_for(verb: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("failed to start the async runtime: {error}")))?;
    let done = runtime.block_on(verb);
    // A thread may still read a stream that is no longer needed.
    runtime.shutdown_background();
    done
}
