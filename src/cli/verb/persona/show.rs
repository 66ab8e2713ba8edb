//! `archivist persona show`: one persona with its users and settings. Secrets are not shown.

use super::{audience, failed, settings};
use crate::client::exit::Failure;
use crate::display::block::Block;
use crate::display::style;
use archivist_config::Scope;
use archivist_core::model::{COOKIES, PersonaName, PersonaSettings, shown_setting};
use archivist_hooks::persona::PROFILE;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Show a persona with its users and settings
///
/// The values of keys, tokens and passwords are hidden.
#[derive(Args)]
pub(super) struct ShowArgs {
    #[arg(value_name = "NAME")]
    name: PersonaName,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ShowArgs, all: &Path, scope: &Scope) -> Result<(), Failure> {
    let (name, directory) = (&args.name, all.join(args.name.as_str()));
    if let Err(error) = directory.symlink_metadata() {
        return Err(failed("read", &directory, &error));
    }
    let [profile, cookies] = [PROFILE, COOKIES].map(|part| directory.join(part).exists());
    let users = if scope.user { None } else { Some(audience::words(&audience::read(all, name)?)) };
    let config = shown(&settings::read(all, name)?);
    if args.json {
        let document: Value = json!({
            "name": name.as_str(), "profile": profile, "cookies": cookies, "users": users,
            "config": config,
        });
        return style::print_json(&document.to_string());
    }
    let word = |there: bool| if there { "yes" } else { "no" };
    let mut block = Block::new();
    block.line("Profile", word(profile));
    block.line("Cookies", word(cookies));
    block.line("Users", users.map_or("yours".to_owned(), |users| users.join(" ")));
    for (key, value) in &config {
        block.line("Setting", format!("{key}={value}"));
    }
    style::print(&format!("{name}\n{}", block.render()))
}

/// Returns the settings for display, without secrets.
fn shown(settings: &PersonaSettings) -> BTreeMap<String, String> {
    let settings = settings.0.iter();
    settings.map(|(key, value)| (key.clone(), shown_setting(key, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let settings: PersonaSettings =
            "ANTHROPIC_API_KEY=hunter2\nHTTP_PROXY=http://me:hunter2@proxy/\nUSER_AGENT=me\n"
                .parse()
                .unwrap();
        let shown = shown(&settings);
        assert!(!format!("{shown:?}").contains("hunter2"), "{shown:?}");
        assert_eq!(shown["USER_AGENT"], "me");
    }
}
