//! Very many calls at once.

use super::systemd::{Fake, soon};
use archivist_shared::systemd::Whom;
use futures_util::future::join_all;

/// The bus refuses a call when 128 of the same connection await their answer.
#[tokio::test]
async fn calls_wait_their_turn() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let units: Vec<String> = (0..300).map(|n| format!("archivist-hook-a-s{n}.service")).collect();
    let all = join_all(units.iter().map(|unit| manager.kill(unit, Whom::All, 15)));
    let answering = async {
        let mut most = 0;
        let mut answered = 0;
        while answered < units.len() {
            let waiting = fake.take_all().await;
            most = most.max(waiting.len());
            for call in &waiting {
                fake.answer(call).await;
            }
            answered += waiting.len();
        }
        most
    };
    let (killed, most) = soon(async { tokio::join!(all, answering) }).await;
    assert!(killed.into_iter().all(|result| result.is_ok()));
    assert!(most < 128, "{most} calls at once");
}
