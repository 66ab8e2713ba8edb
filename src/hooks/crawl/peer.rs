//! The user at the other end of a connection within this machine. TCP has no SO_PEERCRED, but the kernel
//! lists the user of each socket in /proc/net/tcp (proc_pid_net(5)).

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Column of the user id.
const UID: usize = 7;

/// Returns the user whose socket has the address `peer` and is connected to `own`: as the user namespace
/// of this process shows it, 65534 for a user that it does not have. `None` if there is no such socket.
///
/// # Errors
/// If the table cannot be read.
pub fn user(peer: SocketAddr, own: SocketAddr) -> io::Result<Option<u32>> {
    let table = match peer.ip() {
        IpAddr::V4(_) => "/proc/net/tcp",
        IpAddr::V6(_) => "/proc/net/tcp6",
    };
    let text = std::fs::read_to_string(table)?;
    Ok(find(&text, peer, own))
}

fn find(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (shown(local), shown(remote));
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1..3)? == [local.as_str(), remote.as_str()];
        is_it.then(|| words.get(UID)?.parse().ok()).flatten()
    })
}

/// An address as the kernel prints it: words of 32 bits, as numbers in its own byte order.
fn shown(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| {
        let bytes = [word[0], word[1], word[2], word[3]];
        format!("{:08X}", u32::from_ne_bytes(bytes))
    });
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[cfg(target_endian = "little")]
    fn row_of_the_peer_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:05D3 00000000:0000 0A 00000000:00000000 00:00000000 00000000   990        0 1 1 0 100 0 0 10 0
   1: 0100007F:05D3 0100007F:C001 01 00000000:00000000 00:00000000 00000000   990        0 2 1 0 20 4 30 10 -1
   2: 0100007F:C001 0100007F:05D3 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0 20 4 30 10 -1
   3: broken
";
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(find(table, address(0xC001), address(0x5D3)), Some(1001));
        assert_eq!(find(table, address(0x5D3), address(0xC001)), Some(990));
        assert_eq!(find(table, address(0xC002), address(0x5D3)), None);
        let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 1491));
        assert_eq!(shown(v6), "00000000000000000000000001000000:05D3");
    }

    #[test]
    fn own_connection_has_the_own_user() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                assert_ne!(host, "127.0.0.1:0");
                continue;
            };
            let own = listener.local_addr().unwrap();
            let stream = TcpStream::connect(own).unwrap();
            let (_accepted, peer) = listener.accept().unwrap();
            let expected = nix::unistd::geteuid().as_raw();
            assert_eq!(user(peer, own).unwrap(), Some(expected));
            drop(stream);
        }
    }
}
