//! "Did you mean": known names that resemble a misspelt one.

/// Most names that [`similar`] returns.
const SUGGESTIONS_MAX: usize = 3;

/// Longest name that is compared, in characters: the comparison takes time in the product of
/// lengths.
const COMPARED_MAX: usize = 100;

/// Returns at most three of the `known` names that resemble `typed`, the nearest first. A name
/// resembles another if one contains the other, or if at most a third of the letters (four at most)
/// are added, missing or different. Upper and lower case are the same.
pub fn similar<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let comparable = |name: &str| -> String {
        let lower = name.chars().flat_map(char::to_lowercase);
        lower.take(COMPARED_MAX).collect()
    };
    let typed = comparable(typed);
    let most = typed.chars().count().div_ceil(3).min(4);
    let distance = |name: &str| {
        let name = comparable(name);
        let contained = typed.len() >= 3 && (name.contains(&typed) || typed.contains(&name));
        let distance = strsim::levenshtein(&typed, &name);
        (contained || distance <= most).then_some(distance)
    };
    let mut near: Vec<(usize, &str)> =
        known.into_iter().filter_map(|name| Some((distance(name)?, name))).collect();
    near.sort();
    let names = near.into_iter().map(|(_, name)| name);
    names.take(SUGGESTIONS_MAX).collect()
}

/// Returns `; did you mean A, B or C?` for the end of an error message; empty without names.
pub fn did_you_mean<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => format!("; did you mean {last}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_returns_the_nearest_names_first() {
        let known = ["wget", "favicon", "chrome", "chrome_mhtml", "git"];
        assert_eq!(similar("wegt", known), ["wget"]);
        assert_eq!(similar("favicn", known), ["favicon"]);
        assert_eq!(similar("Chrom", known), ["chrome", "chrome_mhtml"]);
        assert_eq!(similar("zzz", known), [""; 0]);
        assert_eq!(similar("", known), [""; 0]);
    }

    #[test]
    fn did_you_mean_lists_every_name() {
        assert_eq!(did_you_mean::<&str>(&[]), "");
        assert_eq!(did_you_mean(&["a"]), "; did you mean a?");
        assert_eq!(did_you_mean(&["a", "b", "c"]), "; did you mean a, b or c?");
    }
}
