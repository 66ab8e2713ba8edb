//! The command in a scope of its own, `archivist-run-PID-….scope`, so that `systemctl status`
//! shows it beside what it runs.

use archivist_core::unit::Names;
use archivist_shared::config::Scope;
use archivist_shared::systemd::enter_scope;
use std::time::Duration;

/// How long systemd may take to answer. It is a service to whoever looks, nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Moves this process into a scope of the machine's manager, or else of the user's own. Who may
/// ask neither goes on without.
pub async fn enter(scope: &Scope) {
    let names = Names::new(scope.unit_prefix());
    let pid = std::process::id();
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    let name = names.run_scope(pid, u32::from_ne_bytes(bytes));
    let slice = names.top_slice();
    let managers: &[bool] = if scope.user { &[true] } else { &[false, true] };
    for user in managers {
        let entering = enter_scope(*user, &name, &slice, pid);
        match tokio::time::timeout(PATIENCE, entering).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => tracing::debug!("{error}, going on without a scope"),
            Err(_) => tracing::debug!("systemd does not answer, going on without a scope"),
        }
    }
}
