//! Patterns of names, as in IAM: `*` stands for any text, also for none; everything else for itself.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a name fits it. Time grows with the name's length and the number of parts, never with their product's
    /// power: each part is looked for once, from where the one before ended.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(mut left) = name.strip_prefix(head) else { return false };
        let mut parts = rest.split('*').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return left.ends_with(part);
            }
            match left.split_once(part) {
                Some((_, behind)) => left = behind,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_is_special() {
        for (pattern, name, fits) in [
            ("train", "train", true),
            ("train", "trains", false),
            ("*", "", true),
            ("*", "anything", true),
            ("search-*", "search-", true),
            ("search-*", "research-x", false),
            ("*-ci", "search-ci", true),
            ("*-ci", "-ci-", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a**b", "axb", true),
            ("s.arch", "search", false),
            ("[a-z]*", "abc", false),
            ("arn:aws:iam::*:role/search-*", "arn:aws:iam::123456789012:role/search-train", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_the_length_of_the_name() {
        let pattern = Pattern::new("*a".repeat(1000) + "b");
        assert!(!pattern.matches(&"a".repeat(100_000)));
    }
}
