//! Stores on other hosts for tests: the SFTP server of rclone, that of OpenSSH, and two servers of S3,
//! moto in Python and s3rver in JavaScript. A test whose server is not installed prints *skipped*.

use archivist_core::store::{Assignment, Record, StoredObject, Task};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_archivist-store");
/// moto wants a signature, and does not verify it; s3rver verifies it, and wants none.
const ANY_KEY: &str = "Authorization: AWS AKIDEXAMPLE:unsigned\r\n";
const SSHD: &str = "/usr/sbin/sshd";

pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a test replaces an object of the store.
enum Behind {
    Directory(PathBuf),
    /// A server of S3 at this port, and a header of requests.
    Requests(u16, &'static str),
}

/// A page in an archive, and a store on another host.
pub struct Bed {
    pub place: tempfile::TempDir,
    pub store: String,
    behind: Behind,
    _server: Server,
}

fn has(program: &str) -> bool {
    let found =
        Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: {program} is not installed");
    }
    found.is_ok()
}

enum Output {
    Standard,
    Errors,
}

/// Starts a server and waits until it says that it listens.
fn serve(command: &mut Command, said: &str) -> Server {
    serve_on(command, Output::Errors, said)
}

fn serve_on(command: &mut Command, on: Output, said: &str) -> Server {
    let (reader, writer) = std::io::pipe().unwrap();
    match on {
        Output::Standard => command.stdout(writer),
        Output::Errors => command.stderr(writer),
    };
    let child = command.spawn().unwrap();
    let mut lines = BufReader::new(reader).lines();
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

/// Sends a request to a server of S3.
fn put(port: u16, path: &str, header: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let size = body.len();
    let request =
        format!("PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
}

/// Makes the keys of a server and its client. Returns the paths of files next to them.
fn make_keys(place: &Path, port: u16) -> impl Fn(&str) -> String + use<> {
    let keys = place.join("keys");
    let key = move |name: &str| keys.join(name).to_str().unwrap().to_owned();
    for name in ["archivist.store.key", "host"] {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &key(name)]);
    }
    fs::create_dir(place.join("remote")).unwrap();
    let host = fs::read_to_string(key("host.pub")).unwrap();
    let known = format!("[127.0.0.1]:{port} {host}");
    fs::write(key("archivist.store.hosts"), known).unwrap();
    key
}

impl Bed {
    pub fn ssh() -> Option<Bed> {
        if !has("rclone") || !has("ssh-keygen") {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        page(place.path());
        let (root, port) = (place.path().join("remote"), free_port());
        let key = make_keys(place.path(), port);
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
            behind: Behind::Directory(root.join("pages")),
            _server: server,
        })
    }

    /// The server of OpenSSH, which serves files alone. It accepts the user of the test.
    pub fn openssh() -> Option<Bed> {
        if !has("rclone") || !has("ssh-keygen") || !has(SSHD) {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        page(place.path());
        let (root, port) = (place.path().join("remote"), free_port());
        let key = make_keys(place.path(), port);
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
        let user = user.unwrap().unwrap().name;
        if user == "root" {
            // Where it gives up its privileges.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nStrictModes no\n\
             UsePAM no\nPidFile none\nSubsystem sftp internal-sftp\nForceCommand internal-sftp\n",
            key("host"),
            key("archivist.store.key.pub"),
        );
        fs::write(key("sshd"), text).unwrap();
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f", &key("sshd")]);
        let server = serve(&mut command, "Server listening on");
        Some(Bed {
            store: format!("ssh://{user}@127.0.0.1:{port}{}/pages", root.display()),
            place,
            behind: Behind::Directory(root.join("pages")),
            _server: server,
        })
    }

    /// s3rver, whose objects are files.
    pub fn s3rver() -> Option<Bed> {
        if !has("rclone") || !has("s3rver") {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        page(place.path());
        let keys = "[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n";
        fs::write(place.path().join("keys/archivist.store.s3"), keys).unwrap();
        let port = free_port();
        let mut command = Command::new("s3rver");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-d"]);
        command.arg(place.path().join("remote"));
        command.args(["--configure-bucket", "bucket"]);
        let server = serve_on(&mut command, Output::Standard, "listening on");
        Some(Bed {
            store: format!("s3://bucket/pages?endpoint=http://127.0.0.1:{port}"),
            behind: Behind::Requests(port, ""),
            place,
            _server: server,
        })
    }

    pub fn s3() -> Option<Bed> {
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
        put(port, "/bucket", ANY_KEY, b"");
        // moto calls an object of a bucket without versions "null", and then refuses that name.
        let versions =
            "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
        put(port, "/bucket?versioning", ANY_KEY, versions.as_bytes());
        Some(Bed {
            place,
            store: format!("s3://bucket/pages?endpoint=http://127.0.0.1:{port}"),
            behind: Behind::Requests(port, ANY_KEY),
            _server: server,
        })
    }

    pub fn page(&self) -> PathBuf {
        self.place.path().join("archive/20261123/a.test/s7")
    }

    fn assignment(&self, task: Task, object: Option<&StoredObject>) -> Assignment {
        Assignment {
            task,
            store: self.store.clone(),
            directory: self.page(),
            path: "20261123/a.test/s7".to_owned(),
            object: object.cloned(),
            reread: true,
        }
    }

    fn spawn(&self, assignment: &Assignment) -> Child {
        let mut child = Command::new(PROGRAM)
            .env("CREDENTIALS_DIRECTORY", self.place.path().join("keys"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let text = serde_json::to_vec(assignment).unwrap();
        child.stdin.take().unwrap().write_all(&text).unwrap();
        child
    }

    pub fn start(&self, task: Task, object: Option<&StoredObject>) -> Child {
        self.spawn(&self.assignment(task, object))
    }

    pub fn run(&self, task: Task, object: Option<&StoredObject>) -> Record {
        finished(self.start(task, object))
    }

    /// The archive of the page, as any store gets it.
    pub fn packed(&self) -> Vec<u8> {
        let store = self.place.path().join("packed");
        fs::create_dir(&store).unwrap();
        let assignment = Assignment {
            store: store.to_str().unwrap().to_owned(),
            ..self.assignment(Task::Put, None)
        };
        let object = finished(self.spawn(&assignment)).object.unwrap();
        fs::read(store.join(object.name)).unwrap()
    }

    /// Replaces an object behind the back of archivist.
    pub fn replace(&self, name: &str, content: &[u8]) {
        match &self.behind {
            Behind::Directory(root) => fs::write(root.join(name), content).unwrap(),
            Behind::Requests(port, header) => {
                put(*port, &format!("/bucket/pages/{name}"), header, content);
            }
        }
    }

    /// The directory of objects, if the store is one.
    pub fn files(&self) -> Option<&Path> {
        match &self.behind {
            Behind::Directory(root) => Some(root),
            Behind::Requests(..) => None,
        }
    }
}

fn finished(child: Child) -> Record {
    let output = child.wait_with_output().unwrap();
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.success(), record.error.is_none());
    record
}
