//! Failed health checks of pools: whether a failure is one of the worker or of the check itself.

use archivist_core::model::start_failure;

/// Exit statuses of a shell that cannot execute a program, or does not find it (sh(1)).
const SHELL_CANNOT: [i32; 2] = [126, 127];
/// Exit status by which a check says that its worker is unhealthy (archivist.pool(5)).
const UNHEALTHY: i32 = 1;

/// Returns why a failed check says nothing about its worker: it was not executed, or failed itself.
/// `result`, `code` and `status` are $MONITOR_SERVICE_RESULT, $MONITOR_EXIT_CODE and
/// $MONITOR_EXIT_STATUS of systemd.exec(5). `None` if the worker is unhealthy: the check said so, or
/// took too long.
pub fn check_fault(result: &str, code: &str, status: &str) -> Option<String> {
    match (result, code) {
        ("resources", _) => Some("systemd failed to start it".to_owned()),
        ("exit-code", "exited") => {
            let status: i32 = status.parse().ok()?;
            if SHELL_CANNOT.contains(&status) {
                let text = format!("its shell failed to execute a program (exit status {status})");
                return Some(text);
            }
            if status == UNHEALTHY {
                return None;
            }
            let failed = || {
                format!(
                    "it failed with exit status {status}, and {UNHEALTHY} is that for an unhealthy worker"
                )
            };
            Some(start_failure(status).map_or_else(failed, str::to_owned))
        }
        ("signal" | "core-dump" | "oom-kill", _) => {
            Some(format!("it was ended by SIG{}", status.trim_start_matches("SIG")))
        }
        _ => None,
    }
}

/// Returns what a failed check proves about its worker. `result` is $MONITOR_SERVICE_RESULT.
pub fn unhealthy_reason(result: &str) -> &'static str {
    match result {
        "timeout" => "its health check did not end in time",
        _ => "its health check found it unhealthy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_check_that_says_so_or_hangs_proves_a_worker_unhealthy() {
        for (result, code, status) in [
            ("exit-code", "exited", "203"),
            ("exit-code", "exited", "217"),
            ("exit-code", "exited", "126"),
            ("exit-code", "exited", "127"),
            ("exit-code", "exited", "2"),
            ("exit-code", "exited", "255"),
            ("signal", "killed", "KILL"),
            ("core-dump", "dumped", "SEGV"),
            ("resources", "", ""),
        ] {
            assert!(check_fault(result, code, status).is_some(), "{status}");
        }
        for (result, code, status) in
            [("exit-code", "exited", "1"), ("timeout", "killed", "TERM"), ("", "", "")]
        {
            assert_eq!(check_fault(result, code, status), None, "{status}");
        }
        let killed = check_fault("signal", "killed", "KILL").unwrap();
        assert_eq!(killed, "it was ended by SIGKILL");
        let missing = check_fault("exit-code", "exited", "203").unwrap();
        assert!(missing.contains("cannot be executed"), "{missing}");
    }
}
