//! `archivist plugins --binaries`: the programs that plugins need.

use super::{failed, used};
use crate::client::exit::{Exit, Failure};
use crate::client::paging::Source;
use crate::client::server::{Server, decode};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::programs::LIST;
use archivist_config::Scope;
use archivist_shared::bus::documents::report::{Binary, Filter};

pub async fn run(json: bool, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let answer = Source::Machine(&server).answer(LIST, &Filter::default()).await?;
    if json {
        style::print_json(&answer)?
    } else {
        style::say(&listed(&decode::<Vec<Binary>>(&answer)?, &Style::of_stdout()))?
    }
    Ok(Exit::Done)
}

/// Characters of a digest that the table shows; --json prints all.
const DIGEST_SHOWN: usize = 12;

fn listed(binaries: &[Binary], style: &Style) -> String {
    let mut table =
        Table::new("PROGRAM  VERSION  FROM  SHA256?  USED?  FAILED  PATH…  NEEDED BY…?");
    for binary in binaries {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let path = match (&binary.abspath, &binary.missing) {
            (Some(path), how) => match &binary.least {
                None => path.as_str().into(),
                Some(least) => {
                    let how = how.as_deref().unwrap_or("install a newer one");
                    Cell::toned(format!("{path}, older than {least}: {how}"), Tone::Bad)
                }
            },
            (None, Some(how)) => Cell::toned(format!("missing: {how}"), Tone::Bad),
            (None, None) => Cell::toned("missing", Tone::Bad),
        };
        let digest: String = text(&binary.sha256).chars().take(DIGEST_SHOWN).collect();
        table.row([
            binary.name.as_str().into(),
            text(&binary.version).into(),
            text(&binary.provider).into(),
            digest.into(),
            used(&binary.uses),
            failed(&binary.uses),
            path,
            binary.plugins.join(" ").into(),
        ]);
    }
    if table.is_empty() { "no plugin needs a program\n".to_owned() } else { table.render(style) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Uses;

    #[test]
    fn missing_programs_are_listed_with_a_command() {
        let binaries = [
            Binary {
                name: "git".into(),
                plugins: vec!["git".into()],
                missing: Some("apt install git".into()),
                ..Binary::default()
            },
            Binary {
                name: "wget".into(),
                abspath: Some("/usr/bin/wget".into()),
                version: Some("1.25.0-2".into()),
                sha256: Some("0123456789abcdef".into()),
                provider: Some("env".into()),
                uses: Uses { succeeded: 12, failed: 3 },
                plugins: vec!["wget".into(), "mirror".into()],
                ..Binary::default()
            },
        ];
        assert_eq!(
            listed(&binaries, &Style::plain(Time(0))),
            "PROGRAM  VERSION   FROM  SHA256        USED  FAILED  PATH                      NEEDED BY\n\
             git                                                  missing: apt install git  git\n\
             wget     1.25.0-2  env   0123456789ab  15    3       /usr/bin/wget             wget mirror\n"
        );
        assert_eq!(listed(&[], &Style::plain(Time(0))), "no plugin needs a program\n");
    }
}
