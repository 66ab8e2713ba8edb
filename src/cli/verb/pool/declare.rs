//! `archivist pool add`, `run`, `scale` and `remove`: change declarations and make systemd read
//! them.

use super::control::{begin, stop_wholly, tell};
use super::{attached, find};
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::machine::pools::{connect, declared, failure};
use archivist_config::declare::{Declaration, Kind, NAME_ALLOWED};
use archivist_config::{Scope, ini};
use archivist_generator as generate;
use archivist_generator::{Context, Pool, WORKERS_MAX, command_line};
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{Survives, replace};
use archivist_shared::systemd::{Job, SystemdClient};
use clap::Args;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

// Parts of a pool's declaration.
#[derive(Args)]
struct Parts {
    /// Number of workers
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    workers: u32,
    /// A key of [Pool], or SECTION.KEY such as Service.User=web; see archivist.pool(5)
    ///
    /// May be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Command of each worker
    ///
    /// Nothing in it is expanded; a worker finds its index in its environment.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Declare a pool that starts at boot: write /etc/archivist/NAME.pool
///
/// With --user, the file is in ~/.config/archivist. A command that contains a slash is resolved relative to
/// the current directory.
#[derive(Args)]
pub struct PoolAddArgs {
    /// Name of the pool
    name: String,
    /// Also start the pool immediately
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    parts: Parts,
}

/// Run a pool that ends with the next boot
///
/// Like archivist pool add, without a file in /etc: the pool starts immediately in the current
/// directory, and lasts until archivist pool remove or the next boot. Print its name.
#[derive(Args)]
pub struct RunArgs {
    /// Name of the pool; generated if missing
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Wait, and stop and remove the pool when this command receives SIGINT, SIGTERM or SIGHUP
    ///
    /// systemd stops the workers even if the command is killed: it runs in a scope,
    /// archivist-attached-NAME.scope, to which they are bound. The declaration then remains until
    /// archivist pool remove or the next boot.
    #[arg(long)]
    attached: bool,
    #[command(flatten)]
    parts: Parts,
}

/// Set the number of workers of a pool
///
/// Write NAME.pool.d/90-scale.conf, and, if the pool is running, start or stop workers accordingly.
#[derive(Args)]
pub struct ScaleArgs {
    /// Name of the pool
    name: String,
    /// Number of workers
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(WORKERS_MAX)))]
    workers: u32,
}

/// Stop pools and delete their declarations; one that belongs to a package is masked
#[derive(Args)]
pub struct RemoveArgs {
    /// Names of pools
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Path of the drop-in that `scale` writes.
const SCALE: &str = "90-scale.conf";

pub async fn add(mut args: PoolAddArgs, scope: &Scope) -> Result<Exit, Failure> {
    let at_boot = if scope.user { "default.target" } else { "multi-user.target" };
    find_from(&here()?, &mut args.parts);
    check_program(&args.parts)?;
    let text = text_of(&args.parts, &[], &[("Install", "WantedBy", at_boot)])?;
    let path = strongest(scope).join(format!("{}.pool", args.name));
    make(&args.name, &path, &text, scope)?;
    let systemd = connect(scope).await?;
    systemd.reload().await.map_err(failure)?;
    if args.now {
        let pool = find(&args.name, scope)?;
        return start(&systemd, pool).await;
    }
    Ok(Exit::Done)
}

pub async fn run(mut args: RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    let name = args.name.take().unwrap_or_else(|| format!("run_{}", std::process::id()));
    let here = here()?;
    find_from(&here, &mut args.parts);
    check_program(&args.parts)?;
    let mut place =
        vec![("Service", "WorkingDirectory", here.to_string_lossy().replace('%', "%%"))];
    if args.attached {
        let command = attached::scope_of(&name);
        place.extend(["BindsTo", "After"].map(|key| ("Unit", key, command.clone())));
    }
    let text = text_of(&args.parts, &place, &[])?;
    let path = runtime(scope).join(format!("{name}.pool"));
    make(&name, &path, &text, scope)?;
    let systemd = connect(scope).await?;
    if args.attached {
        let ran = run_attached(&systemd, &name, scope).await;
        let removed = remove(RemoveArgs { names: vec![name] }, scope).await;
        return ran.and_then(|exit| removed.map(|_| exit));
    }
    systemd.reload().await.map_err(failure)?;
    let pool = find(&name, scope)?;
    style::print(&format!("{name}\n"))?;
    start(&systemd, pool).await
}

/// Starts a pool, and returns when it must end. The exit status says whether all workers started.
async fn run_attached(systemd: &SystemdClient, name: &str, scope: &Scope) -> Result<Exit, Failure> {
    let mut signals = attached::EndSignals::caught()?;
    attached::enter(name, scope).await?;
    systemd.reload().await.map_err(failure)?;
    let pool = find(name, scope)?;
    style::print(&format!("{name}\n"))?;
    let exit = start(systemd, pool.clone()).await?;
    if matches!(exit, Exit::Done) {
        attached::ended(systemd, &pool, &mut signals).await?;
    }
    Ok(exit)
}

fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("failed to find the working directory: {error}")))
}

/// Makes the path of a program (`./worker`) absolute, which systemd requires and a shell does not.
fn find_from(here: &Path, parts: &mut Parts) {
    let program = parts.command.first_mut();
    if let Some(program) = program.filter(|program| program.contains('/')) {
        *program = here.join(&*program).to_string_lossy().into_owned();
    }
}

/// Directories in which systemd searches programs without a path: systemd.exec(5),
/// `ExecSearchPath=`.
const SEARCHED: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Reports a missing program now, as systemd-run does, instead of starting workers that fail.
fn check_program(parts: &Parts) -> Result<(), Failure> {
    let elsewhere = |setting: &String| {
        let places = ["Service.Root", "Service.ExecSearchPath="];
        places.iter().any(|place| setting.starts_with(place))
    };
    let Some(program) = parts.command.first() else {
        return Ok(());
    };
    if parts.settings.iter().any(elsewhere) {
        return Ok(());
    }
    let runs = |path: &Path| {
        let found = path.metadata();
        found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return if runs(Path::new(program)) {
            Ok(())
        } else {
            Err(Failure::usage(format!("'{program}' is not an executable program")))
        };
    }
    let mut searched = SEARCHED.iter();
    if searched.any(|directory| runs(&Path::new(directory).join(program))) {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "found no program '{program}' in {}; give its path",
            SEARCHED.join(", ")
        )))
    }
}

async fn start(systemd: &SystemdClient, pool: Pool) -> Result<Exit, Failure> {
    let pools = [pool];
    let undone = begin(systemd, Job::Start, &pools, true).await?;
    Ok(tell(&undone, &pools))
}

pub async fn scale(args: ScaleArgs, scope: &Scope) -> Result<Exit, Failure> {
    let before = find(&args.name, scope)?;
    if let Some(problem) = before.problems.iter().find(|problem| problem.fatal) {
        return Err(Failure::failed(problem.text()));
    }
    // If the pool ends with the next boot, so does the drop-in.
    let directory = match before.path.parent() {
        Some(parent) if parent == runtime(scope) => runtime(scope),
        _ => strongest(scope),
    };
    let path = directory.join(format!("{}.pool.d", args.name)).join(SCALE);
    let text = format!("# Written by archivist pool scale\n[Pool]\nWorkers={}\n", args.workers);
    write(&path, &text)?;
    let after = find(&args.name, scope)?;
    let systemd = connect(scope).await?;
    systemd.reload().await.map_err(failure)?;
    if after.workers != args.workers {
        let what = format!(
            "another drop-in of {} says Workers={}, and is read after {}",
            args.name,
            after.workers,
            path.display()
        );
        return Err(Failure::failed(what));
    }
    let targets = systemd.loaded(&[after.target()]).await.map_err(failure)?;
    let loaded = systemd.loaded(&[after.pattern()]).await.map_err(failure)?;
    let surplus: Vec<_> = loaded
        .into_iter()
        .filter(|unit| after.index_of(&unit.name).is_some_and(|i| i >= after.workers))
        .map(|unit| unit.name)
        .collect();
    let mut undone = systemd.run(Job::Stop, &surplus, true).await.map_err(failure)?;
    let pools = [after];
    if targets.iter().any(|unit| unit.active_state == "active") {
        undone.extend(begin(&systemd, Job::Start, &pools, true).await?);
    }
    Ok(tell(&undone, &pools))
}

pub async fn remove(args: RemoveArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pools: Vec<Pool> =
        args.names.iter().map(|name| find(name, scope)).collect::<Result<_, _>>()?;
    let systemd = connect(scope).await?;
    for pool in &pools {
        stop_wholly(&systemd, pool).await?;
        for directory in [strongest(scope), runtime(scope)] {
            delete(&directory.join(format!("{}.pool", pool.name)))?;
            delete(&directory.join(format!("{}.pool.d", pool.name)))?;
        }
        // A file of a package must not be deleted.
        if let Some(left) = declared(scope).0.iter().find(|left| left.name == pool.name) {
            let mask = strongest(scope).join(format!("{}.pool", pool.name));
            std::os::unix::fs::symlink("/dev/null", &mask)
                .map_err(|e| cannot("mask", &mask, &e))?;
            eprintln!(
                "{} is part of a package; it is masked by {}",
                left.path.display(),
                mask.display()
            );
        }
    }
    systemd.reload().await.map_err(failure)?;
    Ok(Exit::Done)
}

fn strongest(scope: &Scope) -> PathBuf {
    scope.declaration_dirs().pop().unwrap_or_default()
}

/// Where what is written is gone after the next boot.
fn runtime(scope: &Scope) -> PathBuf {
    let directories = scope.declaration_dirs();
    let at = if scope.user { 0 } else { 1 };
    directories.get(at).cloned().unwrap_or_default()
}

/// Returns the text of a declaration. Settings of the command line come last.
fn text_of(
    parts: &Parts,
    place: &[(&str, &str, String)],
    install: &[(&str, &str, &str)],
) -> Result<String, Failure> {
    let exec = command_line(&parts.command);
    let mut lines = vec![
        ("Pool".to_owned(), format!("Exec={exec}")),
        ("Pool".to_owned(), format!("Workers={}", parts.workers)),
    ];
    for (section, key, value) in place {
        lines.push(((*section).to_owned(), format!("{key}={value}")));
    }
    for (section, key, value) in install {
        lines.push(((*section).to_owned(), format!("{key}={value}")));
    }
    for setting in &parts.settings {
        lines.push(assignment(setting)?);
    }
    let mut sections: Vec<&str> = Vec::new();
    for (section, _) in &lines {
        if !sections.contains(&section.as_str()) {
            sections.push(section);
        }
    }
    let mut text = String::from("# Written by archivist pool; see archivist.pool(5)\n");
    for section in sections {
        text.push_str(&format!("\n[{section}]\n"));
        for (_, line) in lines.iter().filter(|(of, _)| of == section) {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns the section and the line for `[SECTION.]KEY=VALUE`.
fn assignment(setting: &str) -> Result<(String, String), Failure> {
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let usage =
        || Failure::usage(format!("--set '{setting}' is not KEY=VALUE or SECTION.KEY=VALUE"));
    let (key, value) = setting.split_once('=').ok_or_else(usage)?;
    let (section, key) = key.split_once('.').unwrap_or(("Pool", key));
    if !word(section) || !word(key) || value.chars().any(char::is_control) || value.ends_with('\\')
    {
        return Err(usage());
    }
    Ok((section.to_owned(), format!("{key}={value}")))
}

/// Writes the declaration of a new pool if the generator accepts it.
fn make(name: &str, path: &Path, text: &str, scope: &Scope) -> Result<(), Failure> {
    if !Kind::Pool.allows(name) {
        return Err(Failure::usage(format!(
            "'{name}' cannot be the name of a pool; allowed: {NAME_ALLOWED}"
        )));
    }
    if let Some(pool) = declared(scope).0.iter().find(|pool| pool.name == name) {
        let what = format!("pool '{name}' exists already in {}", pool.path.display());
        return Err(Failure::failed(what));
    }
    let parsed = ini::parse(text, path);
    let declaration = Declaration {
        kind: Kind::Pool,
        name: name.to_owned(),
        path: path.to_owned(),
        entries: parsed.entries,
        malformed: parsed.malformed,
    };
    let problems = generate::generate(&[declaration], &Context::default()).problems;
    match problems.first() {
        Some(problem) => Err(Failure::usage(problem.text())),
        None => write(path, text),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let put = || {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        replace(path, text.as_bytes(), 0o644, Survives::PowerCut)
    };
    put().map_err(|error| cannot("write", path, &error))
}

fn delete(path: &Path) -> Result<(), Failure> {
    remove_tree(path).map_err(|error| cannot("delete", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "; use sudo, or --user for your own service manager",
        _ => "",
    };
    Failure::failed(format!("failed to {verb} '{}': {error}{hint}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_one_line_of_a_section() {
        let text = |setting| assignment(setting).map_err(|failure| failure.exit());
        let own = |section: &str, line: &str| Ok((section.to_owned(), line.to_owned()));
        assert_eq!(text("StopSec=5s"), own("Pool", "StopSec=5s"));
        assert_eq!(text("Service.User=web"), own("Service", "User=web"));
        for bad in ["StopSec", "=1", "A.B.C=1", "A=1\n[Service]", "A=1\\", "[X]=2"] {
            assert_eq!(text(bad), Err(Exit::Usage), "{bad:?}");
        }
    }

    #[test]
    fn commands_arrive_as_they_were_typed() {
        let parts = Parts {
            workers: 2,
            settings: vec!["Service.Nice=5".into()],
            command: ["/bin/echo", "a b", "$HOME", "100%", "\"", ""].map(Into::into).to_vec(),
        };
        let want = "# Written by archivist pool; see archivist.pool(5)\n\n[Pool]\n\
                    Exec=/bin/echo \"a b\" \"$$HOME\" 100%% \"\\\"\" \"\"\nWorkers=2\n\n[Service]\nNice=5\n";
        assert_eq!(text_of(&parts, &[], &[]).unwrap(), want);
    }
}
