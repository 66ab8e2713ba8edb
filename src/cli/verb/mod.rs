//! Each verb is one file: it parses its arguments, makes one call and prints the answer. The texts about
//! a verb and its options, in `--help` and in the manual, are the doc comments of its arguments.

pub mod add;
pub mod backup;
pub mod cancel;
pub mod check;
pub mod completions;
pub mod config;
pub mod delete;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod fleet;
pub mod fsck;
pub mod generate;
pub mod heartbeat;
pub mod hook;
pub mod import;
pub mod list;
pub mod logs;
pub mod manual;
pub mod metrics;
pub mod open;
pub mod orchestrator;
pub mod pause;
pub mod persona;
pub mod pin;
pub mod plot;
pub mod plugins;
pub mod pool;
pub mod recorded;
pub mod replay;
pub mod restore;
pub mod resume;
pub mod retry;
pub mod run;
pub mod search;
pub mod share_bodies;
pub mod show;
pub mod status;
pub mod survey;
pub mod tag;
pub mod update;
pub mod verify;
pub mod versions;
pub mod watch;
pub mod why;

use crate::client::exit::{Exit, Failure};
use archivist_config::Scope;
use clap::Subcommand;
use std::process::ExitCode;

// Every verb, in the order of `--help`, to which a doc comment would be the text of the program.
#[derive(Subcommand)]
pub enum Verb {
    Add(add::AddArgs),
    Run(run::RunArgs),
    Status(status::StatusArgs),
    List(list::ListArgs),
    Search(search::SearchArgs),
    Show(show::ShowArgs),
    Versions(versions::VersionsArgs),
    Diff(diff::DiffArgs),
    Plot(plot::PlotArgs),
    Why(why::WhyArgs),
    Metrics(metrics::MetricsArgs),
    Open(open::OpenArgs),
    Replay(replay::ReplayArgs),
    Verify(verify::VerifyArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Logs(logs::LogsArgs),
    Cancel(cancel::CancelArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Retry(retry::RetryArgs),
    Delete(delete::DeleteArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
    Tag(tag::TagArgs),
    Update(update::UpdateArgs),
    Watch(watch::WatchArgs),
    Plugins(plugins::PluginsArgs),
    Install(plugins::install::InstallVerbArgs),
    Persona(persona::PersonaArgs),
    Pool(pool::PoolArgs),
    /// Send a heartbeat from a worker of a pool
    ///
    /// For pools with HeartbeatSec=, see archivist.pool(5).
    Heartbeat,
    Recorded(recorded::RecordedArgs),
    Fleet(fleet::FleetArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Doctor(doctor::DoctorArgs),
    Fsck(fsck::FsckArgs),
    Config(config::ConfigArgs),
    Generate(generate::GenerateArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Manual(manual::ManualArgs),
    #[command(hide = true)]
    Orchestrator(orchestrator::OrchestratorArgs),
    #[command(hide = true)]
    Hook(hook::HookArgs),
    #[command(hide = true)]
    Survey(survey::SurveyArgs),
    #[command(hide = true)]
    ShareBodies(share_bodies::ShareBodiesArgs),
    #[command(hide = true)]
    Check(check::CheckArgs),
}

impl Verb {
    /// `line` is the definition of the command line, for completions and the manual.
    pub fn run(self, scope: &Scope, line: fn() -> clap::Command) -> ExitCode {
        let done = match self {
            Verb::Hook(args) => return hook::run(args),
            Verb::Add(args) => wait_for(add::run(args, scope)),
            Verb::Run(args) => wait_for(run::run(args, scope)),
            Verb::Status(args) => wait_for(status::run(args, scope)),
            Verb::List(args) => wait_for(list::run(args, scope)),
            Verb::Search(args) => wait_for(search::run(args, scope)),
            Verb::Show(args) => wait_for(show::run(args, scope)),
            Verb::Versions(args) => wait_for(versions::run(args, scope)),
            Verb::Diff(args) => wait_for(diff::run(args, scope)),
            Verb::Plot(args) => wait_for(plot::run(args, scope)),
            Verb::Why(args) => wait_for(why::run(args, scope)),
            Verb::Metrics(args) => wait_for(metrics::run(args, scope)),
            Verb::Open(args) => wait_for(open::run(args, scope)),
            Verb::Replay(args) => wait_for(replay::run(args, scope)),
            Verb::Verify(args) => wait_for(verify::run(args, scope)),
            Verb::Import(args) => wait_for(import::run(args, scope)),
            Verb::Survey(args) => survey::run(&args),
            Verb::ShareBodies(args) => share_bodies::run(&args),
            Verb::Export(args) => wait_for(export::run(args, scope)),
            Verb::Logs(args) => wait_for(logs::run(args, scope)),
            Verb::Cancel(args) => wait_for(cancel::run(args, scope)),
            Verb::Pause(args) => wait_for(pause::run(args, scope)),
            Verb::Resume(args) => wait_for(resume::run(args, scope)),
            Verb::Retry(args) => wait_for(retry::run(args, scope)),
            Verb::Delete(args) => wait_for(delete::run(args, scope)),
            Verb::Pin(args) => wait_for(pin::run(args, scope)),
            Verb::Unpin(args) => wait_for(pin::run_unpin(args, scope)),
            Verb::Tag(args) => wait_for(tag::run(args, scope)),
            Verb::Update(args) => wait_for(update::run(args, scope)),
            Verb::Watch(args) => wait_for(watch::run(args, scope)),
            Verb::Plugins(args) => wait_for(plugins::run(args, scope)),
            Verb::Install(args) => wait_for(plugins::install::run_verb(args, scope)),
            Verb::Persona(args) => persona::run(args, scope),
            Verb::Pool(args) => wait_for(pool::run(args, scope)),
            Verb::Heartbeat => heartbeat::run(),
            Verb::Recorded(args) => recorded::run(args),
            Verb::Fleet(args) => wait_for(fleet::run(args, scope)),
            Verb::Backup(args) => backup::run(args, scope),
            Verb::Restore(args) => wait_for(restore::run(args, scope)),
            Verb::Doctor(args) => wait_for(doctor::run(args, scope)),
            Verb::Fsck(args) => wait_for(fsck::run(args, scope)),
            Verb::Config(args) => config::run(args, scope),
            Verb::Generate(args) => generate::run(args, scope),
            Verb::Completions(args) => completions::run(args, line()),
            Verb::Manual(args) => manual::run(&args, &line()),
            Verb::Check(args) => check::run(args, scope),
            Verb::Orchestrator(args) => orchestrator::run(args, scope),
        };
        match done {
            Ok(exit) => exit.into(),
            Err(failure) => failure.in_scope(scope).report(),
        }
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
