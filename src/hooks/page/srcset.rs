//! `srcset`: addresses with descriptors, separated by commas.

/// The candidates of a value in their order: address and descriptor, which may be empty.
pub fn candidates(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let separator = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        at += value[at..].iter().take_while(separator).count();
        let length = value[at..].iter().position(u8::is_ascii_whitespace);
        let start = at;
        at = length.map_or(value.len(), |length| at + length);
        let mut end = at;
        let has_comma = end > start && value[end - 1] == b',';
        while end > start && value[end - 1] == b',' {
            end -= 1;
        }
        let url = &value[start..end];
        let mut descriptor = &value[at..at];
        if !has_comma {
            let length = value[at..].iter().position(|byte| *byte == b',');
            let end = length.map_or(value.len(), |length| at + length);
            descriptor = value[at..end].trim_ascii();
            at = end;
        }
        (!url.is_empty()).then_some((url, descriptor))
    })
}
