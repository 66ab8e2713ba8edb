//! The same units through the orchestrator's client of systemd, which reads each unit and releases
//! it, without queue, database and workers.

use super::{Answer, Hook, millis};
use archivist_core::unit::Names;
use archivist_shared::systemd::{Hint, HintQueue, Manager, Release};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Told when the main process of a unit has ended; by the unit's name.
type Waiting = Rc<RefCell<HashMap<String, oneshot::Sender<()>>>>;

/// Runs `count` units, `at_once` at a time; the milliseconds that each took from the call until what
/// there is to know of its end was read.
pub fn run(hook: &Hook, count: usize, at_once: usize) -> Answer<Vec<f64>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let hints = HintQueue::default();
        let manager = Manager::connect(false, Names::new("floor"), hints.clone()).await?;
        let waiting = Waiting::default();
        tokio::task::spawn_local(hear(hints, waiting.clone()));
        let one = |number| one(hook, &manager, &waiting, number);
        let all = stream::iter(1..=count).map(one).buffer_unordered(at_once);
        all.try_collect().await
    })
}

async fn hear(hints: HintQueue, waiting: Waiting) {
    loop {
        if let Hint::Exited { unit, .. } = hints.next().await
            && let Some(told) = waiting.borrow_mut().remove(&unit)
        {
            let _ = told.send(());
        }
    }
}

async fn one(hook: &Hook, manager: &Manager, waiting: &Waiting, number: usize) -> Answer<f64> {
    let spec = hook.spec(number);
    let stdout = hook.prepare(&spec, number)?;
    let began = Instant::now();
    let (told, end) = oneshot::channel();
    waiting.borrow_mut().insert(spec.name.clone(), told);
    manager.start(&spec, Some(&stdout)).await?;
    end.await?;
    let reading = manager.read(&spec.name).await?;
    let took = millis(began.elapsed());
    manager.release(&spec.name, Release::for_reading(&reading)).await?;
    match reading.exec_main_status {
        0 => Ok(took),
        status => Err(format!("unit '{}' ended with status {status}", spec.name).into()),
    }
}
