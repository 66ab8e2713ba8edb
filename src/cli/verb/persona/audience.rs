//! Users who may use a persona: names and ids, and the file next to the persona.

use super::{failed, read_next_to, write_next_to};
use crate::client::exit::Failure;
use crate::display::{style, text};
use archivist_config::Scope;
use archivist_core::model::{Audience, PersonaName};
use clap::Args;
use nix::unistd::{Gid, Group, User};
use std::path::Path;

#[derive(Args)]
pub(super) struct AudienceArgs {
    #[arg(value_name = "NAME")]
    name: PersonaName,
    /// Users, @GROUPs, or * for everyone who may add crawls
    #[arg(value_name = "USER|@GROUP", required_unless_present = "fleet", value_delimiter = ',')]
    users: Vec<String>,
    /// Crawls that other machines of the fleet added
    ///
    /// They may use the persona here, whatever user the fleet's database names for them; see
    /// archivist-fleet(8).
    #[arg(long)]
    fleet: bool,
}

/// Adds users to the list of a persona, or removes them.
pub(super) fn change(
    args: &AudienceArgs,
    all: &Path,
    scope: &Scope,
    allow: bool,
) -> Result<(), Failure> {
    refuse_in_user_scope(scope)?;
    let (name, directory) = (&args.name, all.join(args.name.as_str()));
    if let Err(error) = directory.symlink_metadata() {
        return Err(failed("read", &directory, &error));
    }
    let mut audience = read(all, name)?;
    let named = parse(&args.users)?;
    if allow {
        audience.everyone |= named.everyone;
        audience.fleet |= args.fleet;
        audience.users.extend(named.users);
        audience.groups.extend(named.groups);
    } else {
        audience.everyone &= !named.everyone;
        audience.fleet &= !args.fleet;
        audience.users.retain(|uid| !named.users.contains(uid));
        audience.groups.retain(|gid| !named.groups.contains(gid));
    }
    write(all, name, &audience)?;
    style::print(&format!("{name} may be used by {}\n", words(&audience).join(", ")))
}

pub(super) fn refuse_in_user_scope(scope: &Scope) -> Result<(), Failure> {
    if scope.user {
        Err(Failure::usage("personas of a user's own archive belong to that user only"))
    } else {
        Ok(())
    }
}

/// Returns the list that `words` name.
pub(super) fn parse(words: &[String]) -> Result<Audience, Failure> {
    let mut audience = Audience::default();
    for word in words {
        let unknown = |what: &str| Failure::usage(format!("{what} '{word}' does not exist"));
        match word.strip_prefix('@') {
            None if word == "*" => audience.everyone = true,
            Some(name) => drop(audience.groups.insert(match Group::from_name(name) {
                Ok(Some(group)) => group.gid.as_raw(),
                _ => name.parse().map_err(|_| unknown("group"))?,
            })),
            None => drop(audience.users.insert(match User::from_name(word) {
                Ok(Some(user)) => user.uid.as_raw(),
                _ => word.parse().map_err(|_| unknown("user"))?,
            })),
        }
    }
    Ok(audience)
}

/// Returns the list of a new persona without `--allow`: the user who called sudo(8), if any.
pub(super) fn usual(sudo_uid: Option<&str>) -> Audience {
    let uid = sudo_uid.and_then(|text| text.parse().ok());
    Audience { users: uid.filter(|uid| *uid != 0).into_iter().collect(), ..Audience::default() }
}

/// Returns the users and groups of a list by name, root first.
pub(super) fn words(audience: &Audience) -> Vec<String> {
    let group = |gid: &u32| {
        let group = Group::from_gid(Gid::from_raw(*gid)).ok().flatten();
        format!("@{}", group.map_or(gid.to_string(), |group| group.name))
    };
    let mut words = vec!["root".to_owned()];
    words.extend(audience.users.iter().map(|uid| text::user(*uid)));
    words.extend(audience.groups.iter().map(group));
    words.extend(audience.fleet.then(|| "--fleet".to_owned()));
    words.extend(audience.everyone.then(|| "*".to_owned()));
    words
}

/// Reads the list of a persona; it is empty if there is no file.
pub(super) fn read(all: &Path, name: &PersonaName) -> Result<Audience, Failure> {
    read_next_to(all, &name.list())
}

pub(super) fn write(all: &Path, name: &PersonaName, audience: &Audience) -> Result<(), Failure> {
    write_next_to(all, &name.list(), &audience.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back() {
        let top = tempfile::tempdir().unwrap();
        let name: PersonaName = "work".parse().unwrap();
        let parsed = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            parse(&words)
        };
        assert_eq!(read(top.path(), &name).unwrap(), Audience::default());
        let audience = parsed(&["root", "@root", "4000000", "*"]).unwrap();
        write(top.path(), &name, &audience).unwrap();
        assert_eq!(read(top.path(), &name).unwrap(), audience);
        assert_eq!(words(&audience), ["root", "root", "4000000", "@root", "*"]);
        for bad in ["no such user", "@no such group", ""] {
            assert!(parsed(&[bad]).is_err(), "{bad}");
        }
        assert_eq!(words(&usual(Some("4000000"))), ["root", "4000000"]);
        for nobody in [None, Some("0"), Some(""), Some("-1")] {
            assert_eq!(usual(nobody), Audience::default());
        }
    }
}
