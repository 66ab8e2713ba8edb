//! The bus interface for users, and its manual page.

use crate::{database, shared};
use archivist_fleet::connect::{Secrets, Target};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet::serve::Fleet;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::wire::{FleetProxy, PATH};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use zbus::object_server::Interface;
use zbus::{Connection, Guid, fdo};

/// A method as org.archivist1(5) shows it.
fn method(text: &str) -> Option<String> {
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    let name = attribute(text, "<method name")?;
    let arguments = text.split("<arg ").skip(1).map(|tag| {
        let tag = tag.split('>').next().unwrap_or_default();
        let words = ["direction", "type", "name"].map(|name| attribute(tag, name));
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    });
    Some(format!("{name}({});", arguments.collect::<Vec<_>>().join(", ")))
}

fn served(url: &str) -> Fleet {
    Fleet::new(Target::parse(url).unwrap(), Secrets::default(), "web1")
}

/// The interface on a connection without a bus, as a client sees it.
async fn called(fleet: Fleet) -> (Connection, FleetProxy<'static>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = zbus::connection::Builder::unix_stream(ours)
        .server(Guid::generate())
        .p2p()
        .serve_at(PATH, fleet);
    let client = zbus::connection::Builder::unix_stream(theirs).p2p();
    let (server, client) = tokio::try_join!(server.build(), client.build()).unwrap();
    (server, FleetProxy::new(&client).await.unwrap())
}

#[test]
fn the_manual_page_shows_every_method() {
    let mut text = String::new();
    served("postgresql://x@%2Ftmp/x").introspect_to_writer(&mut text, 0);
    let real: Vec<_> = text.split("</method>").filter_map(method).collect();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../man/org.archivist1.5");
    let page = std::fs::read_to_string(file).unwrap();
    let (_, section) = page.split_once("THE FLEET INTERFACE").unwrap();
    let (section, _) = section.split_once(".SH ").unwrap();
    let shown = section.lines().filter(|line| line.starts_with("  "));
    let shown: Vec<_> = shown.map(str::trim).collect();
    assert_eq!(shown, real);
    for method in &real {
        let name = method.split('(').next().unwrap();
        assert!(section.contains(&format!(".BR {name} ()")), "{name}");
    }
}

#[tokio::test]
async fn users_get_documents_or_what_is_wrong() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "interface").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let add = "INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES (7, 0, '{}', now())";
    link.client.batch_execute(add).await.unwrap();
    let (_server, fleet) = called(served(&server.url("interface"))).await;
    let status: report::Fleet = serde_json::from_str(&fleet.status().await.unwrap()).unwrap();
    assert_eq!((status.node.as_str(), status.nodes.len()), ("web1", 0));
    let crawls: Vec<report::Crawl> =
        serde_json::from_str(&fleet.list("crawls", r#"{"limit":0}"#).await.unwrap()).unwrap();
    assert_eq!(crawls[0].id.0, 7);
    assert_eq!(fleet.wait("c8", "?").await.unwrap(), "");
    let refused = [
        fleet.show("s1").await,
        fleet.why("x1").await,
        fleet.list("runs", r#"{"limit":0}"#).await,
        fleet.list("crawls", "{").await,
    ];
    let name = |error: zbus::Error| match error {
        zbus::Error::MethodError(name, ..) => name.to_string(),
        zbus::Error::FDO(error) => zbus::DBusError::name(&*error).to_string(),
        other => panic!("{other}"),
    };
    let names = refused.map(|refused| name(refused.unwrap_err()));
    let errors = ["UnknownObject", "InvalidArgs", "InvalidArgs", "InvalidArgs"];
    assert_eq!(names, errors.map(|name| format!("org.freedesktop.DBus.Error.{name}")));
}

#[tokio::test]
async fn a_change_of_a_crawl_ends_the_wait_for_it() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "awaited").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let add = "INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES (7, 0, '{}', now())";
    link.client.batch_execute(add).await.unwrap();
    let (_server, fleet) = called(served(&server.url("awaited"))).await;
    let known = fleet.wait("c7", "").await.unwrap();
    let change = async {
        let pause = "UPDATE archivist.crawl SET wanted = 'pause'; NOTIFY archivist";
        link.client.batch_execute(pause).await.unwrap();
    };
    let (next, ()) = tokio::join!(fleet.wait("c7", &known), change);
    let crawl: report::Crawl = serde_json::from_str(&next.unwrap()).unwrap();
    assert_eq!(crawl.status.as_str(), "paused");
}

#[tokio::test]
async fn a_database_that_is_away_is_reported_within_two_seconds() {
    // Nothing accepts the connection, as if packets were dropped.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("postgresql://x@127.0.0.1:{port}/x?sslmode=disable");
    let (_server, fleet) = called(served(&url)).await;
    let began = Instant::now();
    let away = fleet.status().await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let text = fdo::Error::from(away).to_string();
    assert!(text.contains("NoServer") || text.contains("127.0.0.1"), "{text}");
}

#[test]
fn members_of_the_group_read_nodes_and_only_root_changes_them() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/tree-fleet/usr/share/dbus-1/system.d/org.archivist1.Fleet.conf"
    );
    let policy = std::fs::read_to_string(file).unwrap();
    let rules = |block: &str| -> Vec<String> {
        let (_, rest) = policy.split_once(&format!("<policy {block}>")).unwrap();
        let (rules, _) = rest.split_once("</policy>").unwrap();
        let rules = rules.lines().filter(|line| line.contains("FleetNode\""));
        rules
            .map(|line| match line.split_once("send_member=\"") {
                Some((_, rest)) => rest.split('"').next().unwrap().to_owned(),
                None => "*".to_owned(),
            })
            .collect()
    };
    assert_eq!(rules("group=\"archivist\""), ["State", "Settled", "Nodes"]);
    assert_eq!(rules("user=\"root\""), ["*"]);
}
