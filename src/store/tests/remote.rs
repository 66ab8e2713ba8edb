//! The program with stores on other hosts: the SFTP server of rclone, and moto, a server of S3 in
//! Python. Without them the tests print *skipped*.

use archivist_core::store::{Assignment, Record, StoredObject, Task};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_archivist-store");

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Bed {
    place: tempfile::TempDir,
    store: String,
    _server: Server,
}

fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        eprintln!("skipped: {program} is not installed");
    }
    found.is_ok()
}

/// Starts a server and waits until it says that it listens.
fn serve(command: &mut Command, said: &str) -> Server {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let server = Server(child);
    let found = lines.any(|line| line.unwrap().contains(said));
    assert!(found, "{command:?} does not listen");
    std::thread::spawn(move || lines.for_each(drop));
    server
}

fn page(place: &Path) -> PathBuf {
    let page = place.join("archive/20261123/a.test/s7");
    fs::create_dir_all(page.join("wget")).unwrap();
    fs::create_dir(place.join("keys")).unwrap();
    fs::write(page.join("index.html"), "<p>page").unwrap();
    fs::write(page.join("wget/warc.gz"), vec![7; 3_000_000]).unwrap();
    page
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// Sends a request to the server of S3, which checks no signature.
fn put(port: u16, path: &str, body: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let size = body.len();
    let request =
        format!("PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
}

impl Bed {
    fn ssh() -> Option<Bed> {
        if !has("rclone") || !has("ssh-keygen") {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        page(place.path());
        let keys = place.path().join("keys");
        let key = |name: &str| keys.join(name).to_str().unwrap().to_owned();
        for name in ["archivist.store.key", "host"] {
            run(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &key(name)],
            );
        }
        let root = place.path().join("remote");
        fs::create_dir(&root).unwrap();
        let port = free_port();
        let host = fs::read_to_string(key("host.pub")).unwrap();
        let known = format!("[127.0.0.1]:{port} {host}");
        fs::write(key("archivist.store.hosts"), known).unwrap();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new("rclone");
        command.args(["serve", "sftp", root.to_str().unwrap(), "--addr", &address]);
        command.args(["--key", &key("host")]);
        command.args(["--authorized-keys", &key("archivist.store.key.pub")]);
        command.env("RCLONE_CONFIG", "/notfound");
        let server = serve(&mut command, "listening on");
        Some(Bed {
            place,
            store: format!("ssh://me@127.0.0.1:{port}/pages"),
            _server: server,
        })
    }

    fn s3() -> Option<Bed> {
        if !has("rclone") || !has("moto_server") {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        page(place.path());
        let keys = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n";
        fs::write(place.path().join("keys/archivist.store.s3"), keys).unwrap();
        let port = free_port();
        let mut command = Command::new("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let server = serve(&mut command, "Running on");
        put(port, "/bucket", "");
        // moto calls an object of a bucket without versions "null", and then refuses that name.
        let versions =
            "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
        put(port, "/bucket?versioning", versions);
        Some(Bed {
            place,
            store: format!("s3://bucket/pages?endpoint=http://127.0.0.1:{port}"),
            _server: server,
        })
    }

    fn page(&self) -> PathBuf {
        self.place.path().join("archive/20261123/a.test/s7")
    }

    fn start(&self, task: Task, object: Option<&StoredObject>) -> Child {
        let assignment = Assignment {
            task,
            store: self.store.clone(),
            directory: self.page(),
            path: "20261123/a.test/s7".to_owned(),
            object: object.cloned(),
            reread: true,
        };
        let mut child = Command::new(PROGRAM)
            .env("CREDENTIALS_DIRECTORY", self.place.path().join("keys"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let text = serde_json::to_vec(&assignment).unwrap();
        child.stdin.take().unwrap().write_all(&text).unwrap();
        child
    }

    fn run(&self, task: Task, object: Option<&StoredObject>) -> Record {
        let output = self.start(task, object).wait_with_output().unwrap();
        let record: Record = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.success(), record.error.is_none());
        record
    }
}

/// A page goes to the store, its files are removed, and come back.
fn there_and_back(bed: &Bed) {
    let tested = bed.run(Task::Test, None);
    assert_eq!(tested.error, None);
    let object = bed.run(Task::Put, None).object.unwrap();
    assert_eq!(
        bed.run(Task::Put, None).object.as_ref(),
        Some(&object),
        "it is there"
    );
    assert_eq!(bed.run(Task::Drop, Some(&object)).error, None);
    assert!(!bed.page().join("wget").exists());
    assert_eq!(bed.run(Task::Get, Some(&object)).error, None);
    assert_eq!(
        fs::read(bed.page().join("wget/warc.gz")).unwrap(),
        vec![7; 3_000_000]
    );
    let other = StoredObject {
        name: object.name.replace("s7-", "s7-0"),
        ..object
    };
    let record = bed.run(Task::Drop, Some(&other));
    assert!(record.differs, "{record:?}");
    assert!(bed.page().join("wget").exists());
}

#[test]
fn page_goes_to_a_host_over_ssh_and_back() {
    let Some(bed) = Bed::ssh() else { return };
    there_and_back(&bed);
    let directory = bed.place.path().join("remote/pages/20261123/a.test");
    let names: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn page_goes_to_s3_and_back() {
    let Some(bed) = Bed::s3() else { return };
    there_and_back(&bed);
}

/// The keys of another user, of another host, and none.
#[test]
fn wrong_keys_are_errors_and_change_nothing() {
    let Some(bed) = Bed::ssh() else { return };
    let keys = bed.place.path().join("keys");
    let fails = |part: &str| {
        let record = bed.run(Task::Put, None);
        let error = record.error.unwrap();
        assert!(error.contains(part) && !record.differs, "{error}");
    };
    let key = keys.join("archivist.store.key");
    let own = fs::read(&key).unwrap();
    fs::copy(keys.join("host"), &key).unwrap();
    fails("unable to authenticate");
    fs::write(&key, own).unwrap();
    let hosts = keys.join("archivist.store.hosts");
    let own = fs::read_to_string(keys.join("archivist.store.key.pub")).unwrap();
    let known = fs::read_to_string(&hosts).unwrap();
    let address = known.split(' ').next().unwrap();
    fs::write(&hosts, format!("{address} {own}")).unwrap();
    fails("key mismatch");
    fs::remove_file(&hosts).unwrap();
    fails("/etc/credstore/archivist.store.hosts");
    assert_eq!(
        fs::read_dir(bed.place.path().join("remote"))
            .unwrap()
            .count(),
        0
    );
    assert!(bed.page().join("wget/warc.gz").exists());
}

/// Kills at several moments of a transfer: no visible name is incomplete, and the next one succeeds.
#[test]
fn killed_transfer_leaves_nothing_visible() {
    let Some(bed) = Bed::ssh() else { return };
    let directory = bed.place.path().join("remote/pages/20261123/a.test");
    let names = || -> Vec<String> {
        let list = fs::read_dir(&directory).into_iter().flatten();
        list.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    for part in 0..6 {
        let mut child = bed.start(Task::Put, None);
        std::thread::sleep(Duration::from_millis(part * 120));
        // With rclone, as systemd kills the whole unit.
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait();
        for name in names().iter().filter(|name| name.ends_with(".tar")) {
            let size = fs::metadata(directory.join(name)).unwrap().len();
            assert!(size > 3_000_000, "{name} has {size} bytes");
        }
    }
    assert_eq!(bed.run(Task::Put, None).error, None);
    assert_eq!(names().len(), 1, "{:?}", names());
}
