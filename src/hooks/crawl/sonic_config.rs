//! Configuration of a sonic server: written for plugins whose hooks do not write one, and read for
//! the address of the server.

use crate::process::files::MODE;
use crate::process::settings::PluginSettings;
use archivist_plugin::files::whole::{Survives, replace};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Directory of the server in DATA_DIR, as the plugins of abx-plugins name it.
const DIRECTORY: &str = "sonic";
const FILE: &str = "config.cfg";
/// Copy with another address.
const COPY: &str = "server.cfg";

/// Writes a configuration for a server at `host` and `port` into DATA_DIR, unless it is there.
/// Returns its path.
pub fn write(host: &str, port: u16, settings: &PluginSettings) -> io::Result<PathBuf> {
    let data =
        settings.variable("DATA_DIR").ok_or_else(|| io::Error::other("DATA_DIR is not set"))?;
    let directory = Path::new(data).join(DIRECTORY);
    let password = settings.variable("SEARCH_BACKEND_SONIC_PASSWORD");
    let text = text(host, port, password.unwrap_or_default(), &directory);
    for store in ["store/kv", "store/fst"] {
        std::fs::create_dir_all(directory.join(store))?;
    }
    let path = directory.join(FILE);
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    replace(&path, text.as_bytes(), MODE, Survives::PowerCut)?;
    Ok(path)
}

/// The tables without keys are required by versions before 1.5.
fn text(host: &str, port: u16, password: &str, directory: &Path) -> String {
    // The escapes of JSON are those of basic strings of TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let host = match host {
        "localhost" => "127.0.0.1".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    let path = |store: &str| quoted(&format!("{}/store/{store}/", directory.display()));
    format!(
        "[server]\nlog_level = \"error\"\n\n[channel]\ninet = {}\ntcp_timeout = 300\nauth_password = {}\n\n\
         [channel.search]\n\n[store]\n\n[store.kv]\npath = {}\n\n[store.kv.pool]\n\n[store.kv.database]\n\n\
         [store.fst]\npath = {}\n\n[store.fst.pool]\n\n[store.fst.graph]\n",
        quoted(&format!("{host}:{port}")),
        quoted(password),
        path("kv"),
        path("fst"),
    )
}

/// Returns a configuration and its address at which a server can listen: the given one, or a copy
/// with another port if that address is taken. In a network of its own, it never is; in that of a
/// user, the forwarder of a crawl has it.
pub fn usable(config: &Path) -> io::Result<(PathBuf, SocketAddr)> {
    let text = std::fs::read_to_string(config)?;
    let address =
        address_in(&text).ok_or_else(|| io::Error::other("its configuration has no address"))?;
    match TcpListener::bind(address) {
        Ok(_) => Ok((config.to_owned(), address)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let free = TcpListener::bind((address.ip(), 0))?.local_addr()?;
            let copy = config.with_file_name(COPY);
            std::fs::write(&copy, with_address(&text, free))?;
            Ok((copy, free))
        }
        Err(error) => Err(error),
    }
}

/// Returns the address of the channel in a configuration.
fn address_in(config: &str) -> Option<SocketAddr> {
    let line = config.lines().find(|line| is_address(line))?;
    let (_, value) = line.split_once('=')?;
    let value = value.trim().trim_matches('"');
    value.to_socket_addrs().ok()?.next()
}

fn with_address(config: &str, address: SocketAddr) -> String {
    let replaced = |line: &str| {
        if is_address(line) { format!("inet = \"{address}\"\n") } else { format!("{line}\n") }
    };
    config.lines().map(replaced).collect()
}

fn is_address(line: &str) -> bool {
    let key = line.split_once('=').map(|(key, _)| key.trim());
    key == Some("inet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_the_configuration() {
        let config =
            "[server]\nlog_level = \"error\"\n[channel]\n inet = \"[::1]:1491\"\ninet = \"x\"\n";
        assert_eq!(address_in(config), "[::1]:1491".parse().ok());
        assert_eq!(address_in("inet = \"no port\"\n"), None);
        assert_eq!(address_in(""), None);
    }

    #[test]
    fn configuration_is_written_for_the_plugin() {
        let top = tempfile::tempdir().unwrap();
        let variables =
            [("DATA_DIR", top.path().to_str().unwrap()), ("SEARCH_BACKEND_SONIC_PASSWORD", "a\"b")];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let settings = PluginSettings::new("{}", variables.into());
        let path = write("localhost", 1491, &settings).unwrap();
        assert_eq!(path, top.path().join("sonic/config.cfg"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(address_in(&text), "127.0.0.1:1491".parse().ok());
        assert!(text.contains("auth_password = \"a\\\"b\"\n"), "{text}");
        assert!(top.path().join("sonic/store/kv").is_dir());
        let none = PluginSettings::new("{}", Default::default());
        assert!(write("localhost", 1491, &none).is_err());
    }

    #[test]
    fn taken_address_is_replaced_in_a_copy() {
        let top = tempfile::tempdir().unwrap();
        let config = top.path().join("config.cfg");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let text = format!("[channel]\ninet = \"{address}\"\nauth_password = \"x\"\n");
        std::fs::write(&config, &text).unwrap();
        let (copy, other) = usable(&config).unwrap();
        assert_ne!(other, address);
        let copied = std::fs::read_to_string(&copy).unwrap();
        assert_eq!(address_in(&copied), Some(other));
        assert!(copied.contains("auth_password"));
        drop(listener);
        assert_eq!(usable(&config).unwrap(), (config, address));
    }
}
