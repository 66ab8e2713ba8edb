//! Short names of hooks, as people read them.

/// Returns the short name of a hook: `wget` for `on_Snapshot__06_wget.finite.bg`.
pub fn short_hook(hook: &str) -> &str {
    let Some((_, rest)) = hook.strip_prefix("on_").and_then(|h| h.split_once("__")) else {
        return hook;
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let numberless = match rest[digits..].strip_prefix('_') {
        Some(name) if digits > 0 => name,
        _ => rest,
    };
    let name = ["bg", "finite", "daemon"].iter().fold(numberless, |name, word| {
        name.find(&format!(".{word}")).map_or(name, |at| &name[..at])
    });
    if name.is_empty() { hook } else { name }
}

/// Returns `plugin`, or `plugin/hook` if the hook has another short name.
pub fn hook_label(plugin: &str, hook: &str) -> String {
    match short_hook(hook) {
        short if short == plugin => plugin.to_owned(),
        short => format!("{plugin}/{short}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_hook_drops_event_number_and_suffix() {
        for (hook, want) in [
            ("on_Snapshot__06_wget.finite.bg", "wget"),
            ("on_CrawlSetup__90_chrome_launch.daemon.bg", "chrome_launch"),
            ("on_Snapshot__title", "title"),
            ("on_Snapshot__51_", "on_Snapshot__51_"),
            ("other", "other"),
        ] {
            assert_eq!(short_hook(hook), want);
        }
        assert_eq!(hook_label("wget", "on_Snapshot__06_wget.finite.bg"), "wget");
        assert_eq!(hook_label("chrome", "on_Crawl__20_launch.bg"), "chrome/launch");
    }
}
