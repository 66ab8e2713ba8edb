//! Names that were probably meant.

/// At most three of the known names that differ little from what was typed, the nearest first.
pub fn close<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let typed = typed.to_lowercase();
    let limit = typed.chars().count().div_ceil(3).min(4);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let part = typed.len() >= 3 && (lower.contains(&typed) || typed.contains(&lower));
            let far = distance(&typed, &lower);
            (far <= limit || part).then_some((far, name))
        })
        .collect();
    near.sort();
    near.into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// How many letters must be put in, taken out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(100).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("wget", "wgett"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn finds_what_was_meant() {
        let known = ["wget", "favicon", "chrome", "chrome_mhtml", "git"];
        assert_eq!(close("wegt", known), ["wget"]);
        assert_eq!(close("favicn", known), ["favicon"]);
        assert_eq!(close("Chrom", known), ["chrome", "chrome_mhtml"]);
        assert_eq!(close("zzz", known), Vec::<String>::new());
        assert_eq!(close("", known), Vec::<String>::new());
    }
}
