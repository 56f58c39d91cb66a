//! Flags: `true`, `TRUE`, `yes`, `on`, `1`, and their opposites.

/// Reads a flag in any letter case; `None` for anything else.
#[must_use]
pub fn parse_flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_in_every_spelling() {
        for text in ["true", "TRUE", " Yes ", "y", "ON", "1", "t"] {
            assert_eq!(parse_flag(text), Some(true), "{text}");
        }
        for text in ["false", "False", "no", "N", "off", "0", "f"] {
            assert_eq!(parse_flag(text), Some(false), "{text}");
        }
        for text in ["", "maybe", "2", "truely", "-1"] {
            assert_eq!(parse_flag(text), None, "{text}");
        }
    }
}
