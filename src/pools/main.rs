//! `archivist-pools [--user] unhealthy NAME-INDEX`, which archivist-unhealthy@.service runs. Users do not call
//! it.

use archivist_config::Scope;
use archivist_pools::unhealthy::{self, Worker};
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (user, words) = match words.as_slice() {
        ["--user", words @ ..] => (true, words),
        words => (false, words),
    };
    let worker = match words {
        ["unhealthy", name] => Worker::parse(name),
        _ => None,
    };
    let Some(worker) = worker else {
        eprintln!(
            "archivist-pools: expected [--user] unhealthy NAME-INDEX; archivist-unhealthy@.service starts it"
        );
        return ExitCode::from(USAGE);
    };
    let scope = Scope::from_env(user, None, |name| std::env::var_os(name));
    unhealthy::main(&scope, &worker)
}
