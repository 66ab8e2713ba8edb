//! The text of a page, from the files that other hooks have left. The site of these tests does not
//! exist, so a request to it would fail.

use crate::fixture::{Snapshot, archivist, has};
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Recording};
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};

const NOWHERE: &str = "http://127.0.0.1:1/";

/// Leaves a file and a result as a hook does.
fn leave(snap: &Snapshot, plugin: &str, file: &str, bytes: &[u8]) {
    snap.select(plugin);
    let path = snap.file(plugin).join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
    let record = json!({"type": "ArchiveResult", "status": "succeeded", "output_str": file});
    std::fs::write(snap.file(plugin).join("stdout.log"), format!("{record}\n")).unwrap();
}

/// A PDF with one line.
fn pdf(line: &str) -> String {
    let stream = format!("BT /F 12 Tf 72 720 Td ({line}) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
            .to_owned(),
        format!("<</Length {}>>stream\n{stream}\nendstream", stream.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), "0000000000 65535 f \n".to_owned());
    for (at, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj{object}endobj\n", at + 1);
    }
    let start = file.len();
    format!("{file}xref\n0 6\n{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n")
}

#[test]
fn text_is_that_of_the_best_file_and_no_site_is_visited() {
    let snap = Snapshot::new();
    let empty = snap.run("text", NOWHERE, &[]);
    assert_eq!(empty.result()["status"], "noresults");
    assert!(!snap.file("text/text.txt").exists());

    if has(&["pdftotext"]) {
        leave(&snap, "pdf", "output.pdf", pdf("Words of the print").as_bytes());
        snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
        assert_eq!(snap.read("text/text.txt"), b"Words of the print\n");
        assert_eq!(snap.json("text/text.json")["source"], "pdf");
    }
    let page = "<title>Saved</title><nav>Menu</nav><p>Words of the server</p>";
    leave(&snap, "wget", "127.0.0.1+1/index.html", page.as_bytes());
    snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
    assert_eq!(snap.read("text/text.txt"), b"Words of the server\n");
    assert_eq!(snap.json("text/text.json")["source"], "wget");

    let prose = "Ein Archiv bewahrt Seiten auf, damit man sie später noch lesen kann, auch wenn sie \
        längst aus dem Netz verschwunden sind.";
    let page = format!("<html lang=en><title>Das Archiv</title><script>x</script><p>{prose}");
    leave(&snap, "dom", "output.html", page.as_bytes());
    snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
    let text = String::from_utf8(snap.read("text/text.txt")).unwrap();
    assert_eq!(text, format!("{prose}\n"));
    let document = snap.json("text/text.json");
    assert_eq!(document["source"], "dom");
    assert_eq!(document["language"], "de");
    assert_eq!(document["title"], "Das Archiv");
    assert_eq!(document["characters"], text.chars().count());
    assert_eq!(document["truncated"], false);
    for (name, digits) in [("simhash", 16), ("sha256", 64)] {
        let value = document[name].as_str().unwrap();
        assert_eq!(value.len(), digits, "{name}");
        assert!(value.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    }
}

/// A PATH with what starts a hook, and without programs that read documents.
fn bare_path(snap: &Snapshot) -> String {
    let directory = snap.file("bin");
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["env", "sh", "setpriv"] {
        let _ = std::fs::remove_file(directory.join(name));
        std::os::unix::fs::symlink(format!("/usr/bin/{name}"), directory.join(name)).unwrap();
    }
    let program = archivist();
    format!("{}:{}", program.parent().unwrap().display(), directory.display())
}

/// The text of a page that is this file, which wget has saved.
fn text_of(file: &str, bytes: &[u8], content_type: &str) -> String {
    let snap = Snapshot::new();
    leave(&snap, "wget", &format!("127.0.0.1+1/{file}"), bytes);
    leave(
        &snap,
        "headers",
        "headers.json",
        json!({"content_type": content_type}).to_string().as_bytes(),
    );
    snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
    String::from_utf8(snap.read("text/text.txt")).unwrap()
}

#[test]
fn documents_that_are_no_web_pages_are_read() {
    let json = br#"{"name": "caf\u00e9", "list": ["\u65e5\u672c"]}"#;
    let kind = br#"{"content_type": "application/problem+json"}"#;
    let snap = Snapshot::new();
    leave(&snap, "headers", "headers.json", kind);
    // What the browser shows.
    let shown = [b"<pre>", &json[..], b"</pre>"].concat();
    leave(&snap, "dom", "output.html", &shown);
    leave(&snap, "wget", "127.0.0.1+1/data.json", json);
    snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
    let text = String::from_utf8(snap.read("text/text.txt")).unwrap();
    assert!(text.contains("\"name\": \"café\"") && text.contains("日本"), "{text}");
    let message = "From: =?utf-8?Q?Ren=C3=A9e?= <r@a.test>\r\nSubject: =?utf-8?B?R3LDvMOfZQ==?=\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\
        Content-Transfer-Encoding: quoted-printable\r\n\r\nWords of the m=FChle\r\n--x\r\n\
        Content-Type: text/html\r\n\r\n<p>Words of the markup</p>\r\n--x--\r\n";
    let text = text_of("a.eml", message.as_bytes(), "message/rfc822");
    assert_eq!(text, "Grüße\nRenée\nWords of the mühle\n");
    if !has(&["pandoc"]) {
        return;
    }
    for kind in ["docx", "odt", "epub", "rtf"] {
        let mut pandoc = Command::new("pandoc");
        pandoc.args(["--standalone", "--metadata=title:T", "--output=-", "--to", kind]);
        let mut made = pandoc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // pandoc 2.17 loses the letter after an escape of RTF.
        let words = if kind == "rtf" { "Words" } else { "Wörter" };
        let page = format!("{words} of the *document*");
        made.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let bytes = made.wait_with_output().unwrap().stdout;
        let text = text_of(&format!("a.{kind}"), &bytes, "application/octet-stream");
        let text = text.replace('_', "");
        assert!(text.contains(&format!("{words} of the document")), "{kind}: {text}");
    }
}

#[test]
fn program_that_a_document_needs_is_named() {
    let snap = Snapshot::new();
    leave(&snap, "wget", "127.0.0.1+1/a.rtf", br"{\rtf1 Words}");
    let ran = snap.run("text", NOWHERE, &[("PATH", &bare_path(&snap))]);
    assert_eq!(ran.result()["status"], "noresults");
    assert_eq!(
        ran.result()["output_str"],
        "the page is an RTF document: pandoc is not installed (Debian package pandoc)"
    );
}

#[test]
fn pdfs_in_the_page_are_read() {
    let snap = Snapshot::new();
    let path = snap.file("wacz/page.wacz");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
    let mut recording = Recording::create(file, &About::default()).unwrap();
    let mut add = |path: &str, kind: &str, body: &str| {
        let exchange = Exchange {
            url: format!("{NOWHERE}{path}"),
            method: "GET".to_owned(),
            time: jiff::Timestamp::now(),
            request: Vec::new(),
            posted: None,
            status: 200,
            reason: "OK".to_owned(),
            response: vec![("Content-Type".to_owned(), kind.to_owned())],
            protocols: Vec::new(),
            address: None,
            kind: "other".to_owned(),
            truncated: None,
        };
        recording.add(&exchange, &mut body.as_bytes(), body.len() as u64).unwrap();
    };
    add("", "text/html", "<p>Words of the page<iframe src=a.pdf></iframe>");
    add("a.pdf", "application/pdf", &pdf("Words of the plan"));
    add("a.png", "image/png", "no words");
    recording.finish().unwrap();
    leave(&snap, "dom", "output.html", b"<p>Words of the page<iframe src=a.pdf></iframe>");
    let ran = snap.run("text", NOWHERE, &[]);
    ran.assert(0, "succeeded", "text.txt");
    if has(&["pdftotext"]) {
        assert_eq!(snap.read("text/text.txt"), b"Words of the page\nWords of the plan\n");
    }
    let ran = snap.run("text", NOWHERE, &[("PATH", &bare_path(&snap))]);
    ran.assert(0, "succeeded", "text.txt");
    assert_eq!(
        ran.result()["note"],
        "the text of a PDF in the page is missing: pdftotext is not installed (Debian package poppler-utils)"
    );
    assert!(!snap.file("text/embedded.pdf").exists());
}

#[test]
fn long_text_is_cut_and_the_result_says_so() {
    let snap = Snapshot::new();
    let page = format!("<p>{}", "ä ".repeat(2 << 20));
    leave(&snap, "dom", "output.html", page.as_bytes());
    let ran = snap.run("text", NOWHERE, &[]);
    ran.assert(0, "succeeded", "text.txt");
    assert_eq!(ran.result()["note"], "only the first 1.0M are kept");
    let text = String::from_utf8(snap.read("text/text.txt")).unwrap();
    assert!((1 << 20) - 4 < text.len() && text.len() <= 1 << 20);
    assert_eq!(snap.json("text/text.json")["truncated"], true);
}

/// ArchiveBox 0.7 records no result of its text, and a failure of wget although the page is there.
#[test]
fn imported_page_of_archivebox_has_text_without_a_recorded_success() {
    let snap = Snapshot::new();
    let put = |name: &str, text: &str| {
        let path = snap.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("import/htmltotext.txt", "Words of the extractor");
    let ran = snap.run("text", NOWHERE, &[]);
    assert_eq!(ran.result()["status"], "noresults", "from another program");
    put("import/archivebox.json", "{}");
    let has = |text: &str| {
        snap.run("text", NOWHERE, &[]).assert(0, "succeeded", "text.txt");
        assert_eq!(snap.read("text/text.txt"), format!("{text}\n").as_bytes());
        assert_eq!(snap.json("text/text.json")["source"], "import");
    };
    has("Words of the extractor");
    put("wget/127.0.0.1+1/index.html", "<nav>Menu</nav><p>Words of the server</p>");
    has("Words of the server");
    put("wget/127.0.0.1+1/index.html", "");
    put("import/127.0.0.1+1/index.html", "<p>Words of the rest</p>");
    has("Words of the rest");
}
