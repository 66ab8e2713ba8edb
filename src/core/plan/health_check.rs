//! Failed health checks of pools: whether a failure is one of the worker or of the check itself.

use crate::model::start_failure;

/// Exit statuses of a shell that cannot execute a program, or does not find it (sh(1)).
const SHELL_CANNOT: [i32; 2] = [126, 127];

/// Returns why a failed check says nothing about its worker: it was not executed. `result`, `code`
/// and `status` are $MONITOR_SERVICE_RESULT, $MONITOR_EXIT_CODE and $MONITOR_EXIT_STATUS of
/// systemd.exec(5). `None` if the check ran, so that the worker is unhealthy.
pub fn check_fault(result: &str, code: &str, status: &str) -> Option<String> {
    match (result, code) {
        ("resources", _) => Some("systemd failed to start it".to_owned()),
        ("exit-code", "exited") => {
            let status: i32 = status.parse().ok()?;
            if SHELL_CANNOT.contains(&status) {
                let text = format!("its shell failed to execute a program (exit status {status})");
                return Some(text);
            }
            start_failure(status).map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_check_that_ran_proves_a_worker_unhealthy() {
        for (result, code, status) in [
            ("exit-code", "exited", "203"),
            ("exit-code", "exited", "217"),
            ("exit-code", "exited", "126"),
            ("exit-code", "exited", "127"),
            ("resources", "", ""),
        ] {
            assert!(check_fault(result, code, status).is_some(), "{status}");
        }
        for (result, code, status) in [
            ("exit-code", "exited", "1"),
            ("exit-code", "exited", "255"),
            ("timeout", "killed", "TERM"),
            ("signal", "killed", "KILL"),
            ("", "", ""),
        ] {
            assert_eq!(check_fault(result, code, status), None, "{status}");
        }
        let missing = check_fault("exit-code", "exited", "203").unwrap();
        assert!(missing.contains("cannot be executed"), "{missing}");
    }
}
