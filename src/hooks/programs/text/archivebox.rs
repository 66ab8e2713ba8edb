//! The files with text of a page that was imported from ArchiveBox, whatever results it recorded: a file
//! may be there without a row in its database, or after an error of the program that made it. What
//! belongs to no result is in the directory of the plugin `import`.

use crate::process::invocation::Invocation;
use percent_encoding::percent_decode_str;
use std::path::{Path, PathBuf};
use url::Url;

/// The file that says that a page was imported from ArchiveBox.
const RECORD: &str = "archivebox.json";
const IMPORT: &str = "import";
/// Documents, the best first: plugin, and name in its directory. `import` has them below the name of the
/// plugin if ArchiveBox had a directory for it.
const DOCUMENTS: [(&str, &str, &str); 4] = [
    ("dom", "output.html", "output.html"),
    ("singlefile", "singlefile.html", "singlefile.html"),
    ("readability", "content.html", "readability/content.html"),
    ("mercury", "content.html", "mercury/content.html"),
];
/// Texts, the best first.
const TEXTS: [(&str, &str, &str); 3] = [
    ("readability", "content.txt", "readability/content.txt"),
    ("mercury", "content.txt", "mercury/content.txt"),
    ("htmltotext", "htmltotext.txt", "htmltotext.txt"),
];

pub enum Kept {
    Html(PathBuf),
    Text(PathBuf),
}

/// The files of the page that may have its text, the best first; none if ArchiveBox did not save it.
pub fn files(invocation: &Invocation, address: &Url) -> Vec<Kept> {
    if !invocation.sibling(IMPORT, RECORD).is_file() {
        return Vec::new();
    }
    let places = |(plugin, name, rest): &(&str, &str, &str)| {
        [invocation.sibling(plugin, name), invocation.sibling(IMPORT, rest)]
    };
    let of_wget = ["wget", IMPORT].into_iter().flat_map(|plugin| {
        let directory = invocation.sibling(plugin, "");
        names_of_wget(address).into_iter().map(move |name| directory.join(name))
    });
    let (dom, others) = DOCUMENTS.split_at(2);
    let html = dom.iter().flat_map(places).chain(of_wget);
    let html = html.chain(others.iter().flat_map(places));
    let texts = TEXTS.iter().flat_map(places).map(Kept::Text);
    html.map(Kept::Html).chain(texts).collect()
}

/// Names that wget may have given to the document of a URL with `--adjust-extension` and
/// `--restrict-file-names=windows`, which ArchiveBox sets. They contain no `..`.
fn names_of_wget(url: &Url) -> Vec<PathBuf> {
    let Some(host) = url.host_str() else {
        return Vec::new();
    };
    let hosts = match url.port() {
        None => vec![host.to_owned()],
        Some(port) => vec![format!("{host}+{port}"), format!("{host}:{port}")],
    };
    let decoded = percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
    let mut names = Vec::new();
    for path in [url.path(), &decoded] {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| [".", ".."].contains(part)) || path.contains('\0') {
            continue;
        }
        let path = parts.join("/");
        let is_directory = url.path().ends_with('/');
        let file = match (is_directory, path.is_empty()) {
            (true, true) => "index.html".to_owned(),
            (true, false) => format!("{path}/index.html"),
            (false, _) => path,
        };
        let query = url.query().map(|query| query.replace('/', "%2F"));
        let queries = match query {
            None => vec![file],
            Some(query) => vec![format!("{file}@{query}"), format!("{file}?{query}")],
        };
        for (host, file) in
            hosts.iter().flat_map(|host| queries.iter().map(move |file| (host, file)))
        {
            let endings = ["", ".html"].into_iter();
            names.extend(endings.map(|ending| Path::new(host).join(format!("{file}{ending}"))));
            if !is_directory && url.query().is_none() {
                names.push(Path::new(host).join(file).join("index.html"));
            }
        }
    }
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_wget() {
        let has = |url: &str, name: &str| {
            let names = names_of_wget(&Url::parse(url).unwrap());
            assert!(names.contains(&PathBuf::from(name)), "{url}: {names:?}");
        };
        has("http://a.test", "a.test/index.html");
        has("http://127.0.0.1:8199/", "127.0.0.1+8199/index.html");
        has("http://a.test/x/", "a.test/x/index.html");
        has("http://a.test/x", "a.test/x.html");
        has("http://a.test/x", "a.test/x/index.html");
        has("http://a.test/x.html", "a.test/x.html");
        has("http://a.test/x?a=1", "a.test/x@a=1.html");
        has("http://a.test/a%20b", "a.test/a b.html");
    }

    proptest! {
        #[test]
        fn names_stay_below_the_directory(path in "(/|%2e|%2f|%00|\\.|[a-z?#]){0,12}") {
            if let Ok(url) = Url::parse(&format!("http://a.test:81/{path}")) {
                for name in names_of_wget(&url) {
                    prop_assert!(name.is_relative());
                    prop_assert!(name.components().all(|part| matches!(part, std::path::Component::Normal(_))), "{name:?}");
                }
            }
        }
    }
}
