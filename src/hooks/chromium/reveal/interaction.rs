//! Gives a page what a reader gives without a click: the pointer moves, the wheel turns, a key that does
//! nothing is pressed, a finger rests on the screen. Many pages load their scripts and pictures only then.
//!
//! The events are the browser's own, at a place without a link or control, and only of kinds for which the
//! window, the document or its first elements have a listener: another page is not changed and loses no
//! time. They are no activation by the reader (HTML, section 6.4), so no page opens a window because of
//! them.

use crate::chromium::cdp::CdpError;
use crate::chromium::cdp::isolated_world::IsolatedWorld;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Levels of the document whose listeners count: document, root, body and the children of that.
const LISTENER_LEVELS: u32 = 4;
/// Pixels of one event of the wheel.
const WHEEL_PIXELS: i32 = 100;
/// Time for the events of one kind: a page can be too busy for them.
const EVENTS_MAX: Duration = Duration::from_secs(2);
/// Pixels that the pointer moves before it rests. Pages count its moves, or look how far it moved.
const STEPS: [f64; 2] = [-8.0, -4.0];

const POINTER: [&str; 10] = [
    "mousemove",
    "mouseover",
    "mouseout",
    "mouseenter",
    "mouseleave",
    "pointermove",
    "pointerover",
    "pointerout",
    "pointerenter",
    "pointerleave",
];
const WHEEL: [&str; 2] = ["wheel", "mousewheel"];
const KEY: [&str; 2] = ["keydown", "keyup"];
const TOUCH: [&str; 4] = ["touchstart", "touchmove", "touchcancel", "pointerdown"];

/// A place in the window in the text of the page, and the width of the window. The place has no link or
/// control, if there is such a place.
const PLACE: &str = r#"() => {
  const controls = "a, area, button, input, select, textarea, label, summary, iframe, object, embed, video, audio, nav, menu, [role], [onclick]";
  const isFree = (x, y) => {
    const at = document.elementFromPoint(x, y);
    return at && at !== document.documentElement && !at.closest(controls);
  };
  const parts = [4, 2, 6, 1, 7, 3, 5];
  for (const down of parts) for (const across of parts) {
    const [x, y] = [Math.floor(innerWidth * across / 8), Math.floor(innerHeight * down / 8)];
    if (isFree(x, y)) return [x, y, innerWidth];
  }
  return [innerWidth / 2, innerHeight / 2, innerWidth];
}"#;

/// Waits for events of these kinds.
const HEAR: &str = r#"(kinds) => {
  const heard = (kind) => new Promise((hear) => addEventListener(kind, hear, { capture: true, once: true, passive: true }));
  globalThis.archivistHears = Promise.all(kinds.map(heard));
}"#;

/// Gives the page the events that it has listeners for. Returns whether there were any, after the page has
/// got them.
pub async fn interact(world: &IsolatedWorld<'_>) -> Result<bool, CdpError> {
    let kinds = listeners(world).await?;
    let listens = |some: &[&str]| kinds.iter().any(|kind| some.contains(&kind.as_str()));
    let (touch, pointer) = (listens(&TOUCH), listens(&POINTER));
    let (wheel, key) = (listens(&WHEEL), listens(&KEY));
    if !(touch || pointer || wheel || key) {
        return Ok(false);
    }
    let place = world.evaluate(PLACE, &[]).await?;
    let at = |index: usize| place[index].as_f64().unwrap_or_default();
    let (x, y, outside) = (at(0), at(1), at(2) + 100.0);
    let (mut events, mut heard) = (Vec::new(), Vec::new());
    if touch {
        // A touch that is cancelled is no click.
        for (kind, points) in
            [("touchStart", json!([{"x": x, "y": y}])), ("touchCancel", json!([]))]
        {
            events.push(("Input.dispatchTouchEvent", json!({"type": kind, "touchPoints": points})));
        }
        heard.push("pointercancel");
    }
    if key {
        for kind in ["rawKeyDown", "keyUp"] {
            let shift = json!({"type": kind, "key": "Shift", "code": "ShiftLeft", "location": 1,
                "windowsVirtualKeyCode": 16});
            events.push(("Input.dispatchKeyEvent", shift));
        }
        heard.push("keyup");
    }
    give(world, &events, &heard).await?;
    // The pointer comes last, so that a page that looks for the kind of device finds a mouse. It leaves the
    // window, so that nothing hovers, but not at the top, where pages try to keep the reader. The wheel
    // turns up, so that a page at its top does not move.
    let mouse = |kind: &str, x: f64| {
        let event = json!({"type": kind, "x": x, "y": y, "deltaX": 0, "deltaY": -1});
        ("Input.dispatchMouseEvent", event)
    };
    // Of several moves between two frames, chromium gives the page the last one.
    for step in STEPS.into_iter().filter(|_| pointer) {
        give(world, &[mouse("mouseMoved", x + step)], &["mousemove"]).await?;
    }
    let (mut events, mut heard) = (vec![mouse("mouseMoved", x)], vec!["mousemove"]);
    if wheel {
        events.push(mouse("mouseWheel", x));
        heard.push("wheel");
    }
    give(world, &events, &heard).await?;
    give(world, &[mouse("mouseMoved", outside)], &["mouseout"]).await?;
    Ok(true)
}

/// Turns the wheel in the middle of the window, down or, for a negative number, up.
pub async fn turn(world: &IsolatedWorld<'_>, events: i32) -> Result<(), CdpError> {
    let place = world.evaluate(PLACE, &[]).await?;
    let down = events.signum() * WHEEL_PIXELS;
    let event =
        json!({"type": "mouseWheel", "x": place[0], "y": place[1], "deltaX": 0, "deltaY": down});
    let events = vec![("Input.dispatchMouseEvent", event); events.unsigned_abs() as usize];
    give(world, &events, &["wheel"]).await
}

/// The kinds of events that the page listens for.
async fn listeners(world: &IsolatedWorld<'_>) -> Result<Vec<String>, CdpError> {
    #[derive(Deserialize)]
    struct Found {
        listeners: Vec<Listener>,
    }
    #[derive(Deserialize)]
    struct Listener {
        #[serde(rename = "type")]
        kind: String,
    }
    let mut kinds = Vec::new();
    for (target, levels) in [("window", 1), ("document", LISTENER_LEVELS)] {
        let Some(id) = world.object_in_page(target).await? else {
            continue;
        };
        let target = json!({"objectId": id, "depth": levels});
        let found: Found = world.session.call("DOMDebugger.getEventListeners", target).await?;
        kinds.extend(found.listeners.into_iter().map(|listener| listener.kind));
    }
    Ok(kinds)
}

/// Gives the page these events at once, and waits until it has got those of the kinds `heard`: chromium
/// answers before.
async fn give(
    world: &IsolatedWorld<'_>,
    events: &[(&str, Value)],
    heard: &[&str],
) -> Result<(), CdpError> {
    if events.is_empty() {
        return Ok(());
    }
    world.evaluate(HEAR, &[json!(heard)]).await?;
    for (method, event) in events {
        world.session.post(method, event.clone())?;
    }
    let hearing = world.evaluate("() => globalThis.archivistHears.then(() => true)", &[]);
    timeout(EVENTS_MAX, hearing).await.map_or(Ok(()), |heard| heard.map(drop))
}
