//! Connections to servers that refuse them, and to servers that go away.

use crate::{administer, database, open, shared};
use archivist_fleet::connect::{AUTHORITY, Hint, Link, PASSWORD, Problem, Secrets, Target};
use archivist_fleet::schema::{MIGRATIONS, check, migrate};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::time::Duration;

async fn refusal(url: &str, secrets: &Secrets) -> Problem {
    let target = Target::parse(url).unwrap();
    match Link::open(&target, secrets, "test").await {
        Ok(_) => panic!("{url} accepts the connection"),
        Err(problem) => problem,
    }
}

fn assert_says(problem: &Problem, words: &[&str]) {
    let text = problem.to_string();
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

fn with_password(password: &str) -> Secrets {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(PASSWORD), password).unwrap();
    Secrets::read(Some(directory.path())).unwrap()
}

/// A port of the loopback that no process uses.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_missing_database_or_server_is_named() {
    let Some(server) = shared() else { return };
    let none = Secrets::default();
    let problem = refusal(&server.url("nothing"), &none).await;
    assert!(problem.is_lasting());
    assert_says(&problem, &["'nothing' does not exist", "createdb nothing"]);
    let absent = "postgresql://%2Fnonexistent/archivist";
    let problem = refusal(absent, &none).await;
    assert!(!problem.is_lasting());
    assert_says(&problem, &["failed to connect", "socket does not exist"]);
    let closed = format!("postgresql://127.0.0.1:{}/?sslmode=disable", port());
    assert_says(&refusal(&closed, &none).await, &["connection refused"]);
}

#[tokio::test]
async fn passwords_come_from_the_credential() {
    let Some(other) = shared() else { return };
    let hba = "local all postgres trust\nlocal all all scram-sha-256\n";
    let server = other.start(5432, &["hba_file=@/hba"], &[("hba", hba)]);
    administer(&server, "CREATE ROLE web PASSWORD 'right' LOGIN").await;
    let url = server.url("postgres").replace("postgres@", "web@");
    let problem = refusal(&url, &Secrets::default()).await;
    assert_says(&problem, &["requires a password", PASSWORD]);
    let problem = refusal(&url, &with_password("wrong-one")).await;
    assert!(problem.is_lasting());
    assert_says(&problem, &["wrong password for web", PASSWORD]);
    assert!(!problem.to_string().contains("wrong-one"));
    let target = Target::parse(&url).unwrap();
    let mut link = Link::open(&target, &with_password("right\n"), "test").await.unwrap();
    let problem = migrate(&mut link, MIGRATIONS).await.unwrap_err();
    assert_says(&problem, &["permission denied", "web must own the database"]);
    let stranger = server.url("postgres").replace("postgres@", "nobody@");
    assert!(refusal(&stranger, &with_password("right")).await.is_lasting());
}

/// An authority, and a key and certificate of a server for `localhost`.
struct Certificates {
    authority: String,
    key: String,
    certificate: String,
}

fn certificates(authority: &str, name: &str, year: i32) -> Certificates {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, authority);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = KeyPair::generate().unwrap();
    let authority = params.self_signed(&own).unwrap().pem();
    let issuer = Issuer::new(params, own);
    let mut server = CertificateParams::new([name.to_owned()]).unwrap();
    server.not_before = rcgen::date_time_ymd(2020, 1, 1);
    server.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = KeyPair::generate().unwrap();
    Certificates {
        authority,
        certificate: server.signed_by(&key, &issuer).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

#[tokio::test]
async fn tls_is_verified_in_full() {
    let Some(other) = shared() else { return };
    let none = Secrets::default();
    let cases = [
        ("localhost", 2099, true, ""),
        ("localhost", 2021, true, "has expired"),
        ("db.example", 2099, true, "for another name"),
        ("localhost", 2099, false, "no trusted authority"),
    ];
    for (name, year, is_trusted, expected) in cases {
        let made = certificates("ours", name, year);
        let stranger = certificates("theirs", name, year);
        let port = port();
        let trusted = if is_trusted { &made } else { &stranger };
        let settings =
            ["listen_addresses=localhost", "ssl=on", "ssl_cert_file=@/cert", "ssl_key_file=@/key"];
        let files = [
            ("cert", made.certificate.as_str()),
            ("key", made.key.as_str()),
            ("ca", trusted.authority.as_str()),
        ];
        let server = other.start(port, &settings, &files);
        let ca = server.file("ca");
        let url =
            format!("postgresql://postgres@localhost:{port}/postgres?sslrootcert={}", ca.display());
        if expected.is_empty() {
            let link = open(&url).await;
            let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            assert!(link.client.query_one(query, &[]).await.unwrap().get::<_, bool>(0));
        } else {
            let problem = refusal(&url, &none).await;
            assert!(problem.is_lasting());
            assert_says(&problem, &["failed to verify", expected]);
        }
    }
}

#[tokio::test]
async fn authorities_come_from_the_credential_or_the_caller() {
    let Some(other) = shared() else { return };
    let made = certificates("ours", "localhost", 2099);
    let port = port();
    let settings =
        ["listen_addresses=localhost", "ssl=on", "ssl_cert_file=@/cert", "ssl_key_file=@/key"];
    let files = [("cert", made.certificate.as_str()), ("key", made.key.as_str())];
    let _server = other.start(port, &settings, &files);
    let url = format!("postgresql://postgres@localhost:{port}/postgres");
    let target = Target::parse(&url).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(AUTHORITY), &made.authority).unwrap();
    let credential = Secrets::read(Some(directory.path())).unwrap();
    let given = |pem: &str| {
        let input = format!("\n{pem}");
        Secrets::from_input(input.as_bytes(), Some("our-ca.pem")).unwrap()
    };
    for secrets in [credential, given(&made.authority)] {
        let link = Link::open(&target, &secrets, "test").await;
        link.unwrap_or_else(|problem| panic!("{problem}"));
    }
    let broken = made.authority.replacen("MI", "!!", 1);
    for (pem, reason) in [
        ("", "contains no certificate"),
        (&*made.key, "contains no certificate"),
        (&*broken, ""),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ""),
    ] {
        let problem = refusal(&url, &given(pem)).await;
        assert!(problem.is_lasting());
        assert_says(&problem, &["certificates of authorities: our-ca.pem", reason]);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let Some(other) = shared() else { return };
    let port = port();
    let server = other.start(
        port,
        &["listen_addresses=localhost"],
        &[("ca", &certificates("ours", "localhost", 2099).authority)],
    );
    let ca = server.file("ca");
    let url =
        format!("postgresql://postgres@localhost:{port}/postgres?sslrootcert={}", ca.display());
    assert_says(&refusal(&url, &Secrets::default()).await, &["it has no TLS", "ssl=on"]);
    let bad = "postgresql://localhost/?sslrootcert=/nonexistent/ca.pem";
    assert_says(
        &refusal(bad, &Secrets::default()).await,
        &["certificates of authorities", "/nonexistent/ca.pem"],
    );
}

#[tokio::test]
async fn a_read_only_database_is_refused() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "reading").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    administer(server, "ALTER DATABASE reading SET default_transaction_read_only = on").await;
    let problem = refusal(&server.url("reading"), &Secrets::default()).await;
    assert!(problem.is_lasting());
    assert_says(&problem, &["read-only", "primary"]);
}

#[tokio::test]
async fn hints_reach_the_other_nodes() {
    let Some(server) = shared() else { return };
    let sender = database(server, "hints").await;
    let receiver = open(&server.url("hints")).await;
    for announced in [Hint::Pages, Hint::Orders, Hint::Pages] {
        sender.announce(announced).await.unwrap();
        let hint = tokio::time::timeout(Duration::from_secs(10), receiver.hint());
        assert_eq!(hint.await.unwrap(), announced);
    }
}

#[tokio::test]
async fn a_lost_connection_is_seen_and_made_again() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "lost").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    link.heartbeat().await.unwrap();
    administer(
        server,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'lost'",
    )
    .await;
    let problem = link.heartbeat().await.unwrap_err();
    assert!(!problem.is_lasting(), "{problem}");
    let target = Target::parse(&server.url("lost")).unwrap();
    let again = Link::open(&target, &Secrets::default(), "test").await.unwrap();
    check(&again).await.unwrap();
}
