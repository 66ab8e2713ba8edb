//! What this node reports to the fleet's database. A request is written in the transaction of the
//! change that it reports.

use crate::main_loop::action::ReplyAction;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::fleet::NodeRequest;

/// Appends a request to the outbox.
pub(crate) fn send_to_fleet(turn: &mut Turn<'_>, request: &NodeRequest) -> TurnResult<()> {
    turn.tx.add_to_outbox(request)?;
    turn.act(ReplyAction::OutboxChanged);
    Ok(())
}
