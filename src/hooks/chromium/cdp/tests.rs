use super::*;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixListener;

/// A connection to a browser that answers as `browser` says: messages for each request.
async fn connected(
    browser: impl Fn(Value) -> Vec<Value> + Send + 'static,
) -> (Connection, tempfile::TempDir) {
    let (socket, top) = served(browser);
    (Connection::open(&socket, 1000).await.unwrap(), top)
}

/// The socket of a browser that answers as `browser` says.
fn served(
    browser: impl Fn(Value) -> Vec<Value> + Send + 'static,
) -> (std::path::PathBuf, tempfile::TempDir) {
    let top = tempfile::tempdir().unwrap();
    let socket = top.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut requests = BufReader::new(reader).split(0);
        while let Ok(Some(request)) = requests.next_segment().await {
            for message in browser(serde_json::from_slice(&request).unwrap()) {
                let mut bytes = message.to_string().into_bytes();
                bytes.push(0);
                writer.write_all(&bytes).await.unwrap();
            }
        }
    });
    (socket, top)
}

#[tokio::test]
async fn a_tap_loses_no_message_while_it_waits_for_an_answer() {
    let event = |n: u64| json!({"method": "E", "params": {"n": n}});
    let (socket, _top) = served(move |request| {
        let answer = json!({"id": request["id"], "result": {}});
        vec![event(1), event(2), answer, event(3)]
    });
    let mut tap = Tap::open(&socket, 1000).unwrap();
    let call = Call { id: 7, session: None, method: "A", params: json!({}) };
    let _: Value = tap.call(&call).await.unwrap();
    for expected in 1..=3 {
        let Frame::Message(bytes) = tap.next().await.unwrap() else {
            panic!("a message is too large")
        };
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), event(expected));
    }
}

fn session(connection: &Connection, id: &str) -> Session {
    connection.session(id.to_owned())
}

#[tokio::test]
async fn calls_of_two_sessions_are_answered_in_any_order() {
    let held = Mutex::new(None);
    // Answers the first request after the second.
    let (connection, _top) = connected(move |request| {
        let answer = json!({"id": request["id"], "result": {"of": request["sessionId"]}});
        match held.lock().unwrap().replace(answer.clone()) {
            None => Vec::new(),
            Some(first) => vec![answer, first],
        }
    })
    .await;
    let (one, two) = (session(&connection, "S1"), session(&connection, "S2"));
    let (first, second): (Result<Value, _>, Result<Value, _>) =
        tokio::join!(one.call("A", json!({})), two.call("A", json!({})));
    assert_eq!(first.unwrap()["of"], "S1");
    assert_eq!(second.unwrap()["of"], "S2");
}

#[tokio::test]
async fn events_reach_their_session_and_no_other() {
    let event =
        |session: &str, n: u64| json!({"method": "E", "params": {"n": n}, "sessionId": session});
    let (connection, _top) = connected(move |request| {
        let dropped = json!({"method": "F", "params": {}, "sessionId": "S1"});
        let answer = json!({"id": request["id"], "result": {}});
        vec![dropped, event("S2", 2), event("S1", 1), answer]
    })
    .await;
    let one = session(&connection, "S1");
    let mut events = one.events(&["E"]);
    let _: Ignored = one.call("A", json!({})).await.unwrap();
    assert_eq!(events.next().await.unwrap().params["n"], 1);
    assert!(events.received.try_recv().is_err());
}

#[tokio::test]
async fn crash_ends_calls_and_events_of_its_session_alone() {
    let (connection, _top) = connected(|request| match request["method"].as_str() {
        Some("Crash") => vec![json!({"method": CRASHED, "params": {}, "sessionId": "S1"})],
        _ => vec![json!({"id": request["id"], "result": {}})],
    })
    .await;
    let one = session(&connection, "S1");
    let mut events = one.events(&["E"]);
    let crashed = CdpError::Closed("the page's renderer process crashed");
    let call = one.call::<Ignored>("Crash", json!({})).await;
    assert_eq!(call.err(), Some(crashed.clone()));
    assert_eq!(events.next().await.err(), Some(crashed.clone()));
    assert_eq!(one.post("B", json!({})), Err(crashed));
    let other = session(&connection, "S2");
    assert!(other.call::<Ignored>("B", json!({})).await.is_ok());
}

#[tokio::test]
async fn refusals_and_answers_above_the_limit_are_errors() {
    let (connection, _top) = connected(|request| match request["method"].as_str() {
        Some("Big") => vec![json!({"id": request["id"], "result": "x".repeat(2000)})],
        _ => vec![json!({"id": request["id"], "error": {"message": "no"}})],
    })
    .await;
    let browser = connection.browser();
    let big = browser.call::<Ignored>("Big", json!({})).await;
    assert_eq!(big.err(), Some(CdpError::TooLarge("Big".to_owned())));
    let refused = browser.call::<Ignored>("A", json!({})).await.err();
    assert_eq!(refused.unwrap().to_string(), "chromium refused A: no");
}
