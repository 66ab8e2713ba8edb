//! The text of a page, from the files that other hooks have left. The site of these tests does not
//! exist, so a request to it would fail.

use crate::fixture::{Snapshot, has};
use serde_json::json;

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
