//! Text in HTML and XML.

/// Returns a text as content of an element, or as the value of an attribute in quotes of either kind.
#[must_use]
pub fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_an_attribute_or_begins_an_element() {
        assert_eq!(
            escape_markup("&amp;<i a='1' b=\"2\">é"),
            "&amp;amp;&lt;i a=&#39;1&#39; b=&quot;2&quot;&gt;é"
        );
    }
}
