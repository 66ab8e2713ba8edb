//! Encodes [`Property`] values as D-Bus values.

use archivist_core::model::Subnet;
use archivist_core::unit::Property;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use zbus::{Fd, Variant};

/// MS_REC (mount(2)): a bind mount includes the mounts below its directory.
const MOUNT_RECURSIVE: u64 = 0x4000;

/// Address families (address_families(7)).
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;

type Command = (String, Vec<String>, bool);
type LiteralCommand = (String, Vec<String>, Vec<String>);
type Bind = (String, String, bool, u64);
type Prefix = (i32, Vec<u8>, u32);

/// Encodes names and values. At most one property is the descriptor.
pub fn encode(
    properties: &[(&'static str, Property)],
    mut descriptor: Option<OwnedFd>,
) -> Vec<(String, Variant<'static>)> {
    let pairs = properties
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), variant(value, &mut descriptor)?)));
    pairs.collect()
}

fn variant(value: &Property, descriptor: &mut Option<OwnedFd>) -> Option<Variant<'static>> {
    Some(match value {
        Property::Text(text) => Variant::from(text.clone()),
        Property::Flag(flag) => Variant::from(*flag),
        Property::Number(number) => Variant::from(*number),
        Property::List(list) => Variant::from(list.clone()),
        Property::Command(argv) => {
            let program = argv.first()?.clone();
            let is_failure_ignored = false;
            let commands: Vec<Command> = vec![(program, argv.clone(), is_failure_ignored)];
            Variant::from(commands)
        }
        Property::LiteralCommand(argv) => {
            let program = argv.first()?.clone();
            let flags = vec!["no-env-expand".to_owned()];
            let commands: Vec<LiteralCommand> = vec![(program, argv.clone(), flags)];
            Variant::from(commands)
        }
        Property::Binds(paths) => {
            let bind = |(from, to): &(String, String)| {
                let optional = from.strip_prefix('-');
                let from = optional.unwrap_or(from).to_owned();
                (from, to.clone(), optional.is_some(), MOUNT_RECURSIVE)
            };
            Variant::from(paths.iter().map(bind).collect::<Vec<Bind>>())
        }
        Property::Credentials(credentials) => Variant::from(credentials.clone()),
        Property::Bytes(lines) => {
            let bytes: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
            Variant::from(bytes)
        }
        Property::Networks(networks) => {
            Variant::from(networks.iter().map(prefix).collect::<Vec<Prefix>>())
        }
        Property::Descriptor => Variant::from(Fd::from(descriptor.take()?)),
    })
}

fn prefix(network: &Subnet) -> Prefix {
    let (family, bytes) = match network.address() {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    };
    (family, bytes, u32::from(network.prefix()))
}
