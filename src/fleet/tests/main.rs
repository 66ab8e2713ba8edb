//! The fleet's database on a real PostgreSQL.

mod absurd;
mod commands;
mod connecting;
mod cost;
mod differential;
mod interface;
mod joining;
mod lengths;
mod members;
mod migrations;
mod own_ids;
mod restored;
mod rows;
mod server;
mod sharing;
mod steps;
mod timeline;
mod together;
mod upgrade;
mod view;

use archivist_fleet::connect::{Link, Secrets, Target};
use server::{Server, shared};

async fn open(url: &str) -> Link {
    let target = Target::parse(url).unwrap();
    let link = Link::open(&target, &Secrets::default(), "test").await;
    link.unwrap_or_else(|problem| panic!("{problem}"))
}

/// Runs statements as the superuser of a server.
async fn administer(server: &Server, sql: &str) {
    let link = open(&server.url("postgres")).await;
    link.client.batch_execute(sql).await.unwrap();
}

/// An empty database of its own.
async fn database(server: &Server, name: &str) -> Link {
    administer(server, &format!("CREATE DATABASE {name}")).await;
    open(&server.url(name)).await
}
