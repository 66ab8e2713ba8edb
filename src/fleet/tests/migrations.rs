//! Schemas of other versions.

use crate::{database, open, shared};
use archivist_fleet::connect::Problem;
use archivist_fleet::schema::{MIGRATIONS, Migration, VERSION, check, migrate};

/// The steps of a program of the next version.
fn next(text: &'static str, programs_from: i32) -> Vec<Migration> {
    let step = Migration { text, programs_from };
    [MIGRATIONS, &[step]].concat()
}

#[tokio::test]
async fn an_empty_database_gets_the_schema_once() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "empty").await;
    assert!(matches!(check(&link).await, Err(Problem::NoFleet { .. })));
    assert_eq!(migrate(&mut link, MIGRATIONS).await.unwrap(), 0);
    check(&link).await.unwrap();
    assert_eq!(migrate(&mut link, MIGRATIONS).await.unwrap(), VERSION);
}

#[tokio::test]
async fn programs_that_migrate_at_the_same_time_wait_for_each_other() {
    let Some(server) = shared() else { return };
    let mut first = database(server, "twice").await;
    let mut second = open(&server.url("twice")).await;
    let (one, two) =
        tokio::join!(migrate(&mut first, MIGRATIONS), migrate(&mut second, MIGRATIONS));
    assert_eq!(one.unwrap() + two.unwrap(), VERSION);
    check(&first).await.unwrap();
}

#[tokio::test]
async fn a_schema_of_the_future_is_refused_and_unchanged() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "future").await;
    let next = next("CREATE TABLE archivist.colour (a int)", VERSION + 1);
    migrate(&mut link, &next).await.unwrap();
    let newer = VERSION + 1;
    for refusal in [check(&link).await, migrate(&mut link, MIGRATIONS).await.map(drop)] {
        let text = refusal.unwrap_err().to_string();
        let says =
            format!("schema is version {newer}, and this program knows versions up to {VERSION}");
        assert!(text.contains(&says) && text.contains("upgrade archivist"), "{text}");
    }
}

#[tokio::test]
async fn a_failed_step_changes_nothing() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "broken").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let broken = next("CREATE TABLE archivist.half (a int); SELECT 1 / 0", 1);
    let problem = migrate(&mut link, &broken).await.unwrap_err();
    assert!(problem.to_string().contains("division by zero"), "{problem}");
    check(&link).await.unwrap();
    let half = "SELECT to_regclass('archivist.half') IS NULL";
    assert!(link.client.query_one(half, &[]).await.unwrap().get::<_, bool>(0));
}
