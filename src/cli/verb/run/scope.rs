//! The scope `archivist-run-PID-….scope` of this command, so that `systemctl status` shows it next
//! to the units that it runs.

use archivist_config::Scope;
use archivist_core::unit::Names;
use archivist_shared::systemd::enter_scope;
use std::time::Duration;

/// Deadline for systemd's answer. The scope is a convenience; nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Moves this process into a scope of the machine's service manager, or else of the user's. Without
/// permission for either, the command continues without a scope.
pub async fn enter(scope: &Scope) {
    let names = Names::new(scope.unit_prefix());
    let pid = std::process::id();
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    let name = names.run_scope(pid, u32::from_ne_bytes(bytes));
    let slice = names.top_slice();
    let managers: &[bool] = if scope.user { &[true] } else { &[false, true] };
    for user in managers {
        let entering = enter_scope(*user, &name, "archivist run", &slice, pid);
        match tokio::time::timeout(PATIENCE, entering).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => tracing::debug!("{error}, continuing without a scope"),
            Err(_) => tracing::debug!("systemd does not answer, continuing without a scope"),
        }
    }
}
