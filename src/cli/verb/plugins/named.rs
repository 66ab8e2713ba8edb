//! `archivist plugins NAME…`: only these plugins, and all about a single one.

use crate::client::exit::Failure;
use crate::client::server::decode;
use crate::display::style::{Style, Tone};
use crate::display::text;
use archivist_core::text::{clean, did_you_mean, similar};
use archivist_plugin::programs::binary::hydrate;
use archivist_plugin::{Property, Schema};
use archivist_shared::bus::documents::report::{Plugin, Plugins};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Leaves only the plugins of these names, in any case; all without names.
///
/// # Errors
/// If there is no plugin of a name.
pub fn select(plugins: &mut Plugins, names: &[String]) -> Result<(), Failure> {
    let is_called = |plugin: &Plugin, name: &String| plugin.name.eq_ignore_ascii_case(name);
    for name in names {
        if plugins.plugins.iter().any(|plugin| is_called(plugin, name)) {
            continue;
        }
        let known = plugins.plugins.iter().map(|plugin| plugin.name.as_str());
        return Err(Failure::usage(format!(
            "no plugin is named '{}'{}",
            clean(name),
            did_you_mean(&similar(name, known))
        )));
    }
    if !names.is_empty() {
        plugins.plugins.retain(|plugin| names.iter().any(|name| is_called(plugin, name)));
        plugins.problems.clear();
    }
    Ok(())
}

/// Returns the plugins of the orchestrator's answer that are among these, as JSON, with all members.
pub fn document(answer: &str, plugins: &Plugins) -> Result<String, Failure> {
    let mut document: Value = decode(answer)?;
    let is_selected = |entry: &Value| {
        let mut names = plugins.plugins.iter().map(|plugin| plugin.name.as_str());
        names.any(|name| entry.get("name").and_then(Value::as_str) == Some(name))
    };
    if let Some(Value::Array(entries)) = document.get_mut("plugins") {
        entries.retain(is_selected);
    }
    Ok(document.to_string())
}

/// Returns what the `config.json` of a plugin says for users: path, requirements, output, hooks and
/// settings.
pub fn details(plugin: &Plugin, style: &Style) -> String {
    let file = Path::new(&plugin.directory).join("config.json");
    let schema = std::fs::read_to_string(&file)
        .map_err(|error| error.to_string())
        .and_then(|text| Schema::parse(&file, &text).map_err(|error| error.to_string()));
    match schema {
        Ok(schema) => described(plugin, &schema, style),
        Err(error) => format!("failed to read '{}': {}\n", file.display(), clean(&error)),
    }
}

fn described(plugin: &Plugin, schema: &Schema, style: &Style) -> String {
    let defaults = schema.properties.iter();
    let defaults = defaults.filter_map(|(name, property)| {
        let default = property.default.clone()?;
        Some((name.clone(), default))
    });
    let defaults = defaults.collect();
    let binaries = schema.required_binaries.iter();
    let binaries = binaries.map(|program| hydrate(&program.name, &defaults));
    let binaries: Vec<_> = binaries.collect();
    let hooks = plugin.hooks.iter().map(|hook| text::short_hook(hook));
    let hooks: Vec<_> = hooks.map(str::to_owned).collect();
    let rows = [
        ("Directory", vec![plugin.directory.clone()]),
        ("Requires plugins", schema.required_plugins.clone()),
        ("Requires programs", binaries),
        ("Output", schema.output_mimetypes.clone()),
        ("Hooks", hooks),
    ];
    let mut text = String::new();
    for (title, words) in rows.iter().filter(|(_, words)| !words.is_empty()) {
        let title = style.paint(&format!("{title}:"), Tone::Dim);
        let _ = writeln!(text, "{title} {}", clean(&words.join(" ")));
    }
    if !schema.properties.is_empty() {
        let title = "Settings, for --set and [Config] of archivist.conf(5):";
        let _ = writeln!(text, "{}", style.paint(title, Tone::Dim));
    }
    for (name, property) in &schema.properties {
        let _ = writeln!(text, "  {name}={}", default_of(property));
        if !property.description.is_empty() {
            let description = format!("    {}", clean(&property.description));
            let _ = writeln!(text, "{}", style.paint(&description, Tone::Dim));
        }
    }
    text
}

/// Returns the default of a setting as `--set` accepts it.
fn default_of(property: &Property) -> String {
    match &property.default {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => clean(text),
        Some(value) => clean(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    fn plugin(name: &str) -> Plugin {
        Plugin {
            name: name.into(),
            directory: concat!(env!("CARGO_MANIFEST_DIR"), "/plugins/wget").into(),
            description: String::new(),
            hooks: vec!["on_Snapshot__06_wget.finite.bg".into()],
            skipped: None,
            by_choice: false,
            fix: None,
            uses: Default::default(),
        }
    }

    #[test]
    fn named_plugins_are_selected_and_unknown_names_are_refused() {
        let mut plugins =
            Plugins { plugins: vec![plugin("pdf"), plugin("wget")], problems: Vec::new() };
        let why = select(&mut plugins, &["wgte".to_owned()]).unwrap_err();
        assert_eq!(why.message(), "no plugin is named 'wgte'; did you mean wget?");
        select(&mut plugins, &[]).unwrap();
        assert_eq!(plugins.plugins.len(), 2);
        select(&mut plugins, &["WGET".to_owned()]).unwrap();
        let names = plugins.plugins.iter().map(|plugin| plugin.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["wget"]);
        let answer = r#"{"plugins": [{"name": "pdf"}, {"name": "wget", "more": 1}]}"#;
        assert_eq!(
            document(answer, &plugins).unwrap(),
            r#"{"plugins":[{"name":"wget","more":1}]}"#
        );
    }

    #[test]
    fn details_have_requirements_hooks_and_settings_with_defaults() {
        let text = details(&plugin("wget"), &Style::plain(Time(0)));
        for part in [
            "Requires programs: wget\n",
            "Hooks: wget\n",
            "  WGET_TIMEOUT=60\n    Time limit in seconds",
            "  WGET_ARGS_EXTRA=[]\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let mut gone = plugin("gone");
        gone.directory = "/nowhere".into();
        let text = details(&gone, &Style::plain(Time(0)));
        assert!(text.starts_with("failed to read '/nowhere/config.json'"));
    }
}
