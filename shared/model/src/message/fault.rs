//! Why a text is no JSON, in plain words instead of those of a parser.

/// What the parser says, and how people say it.
const SAID: [(&str, &str); 15] = [
    ("EOF while parsing a string", "it ends inside a text"),
    ("EOF while parsing a list", "it ends inside a list"),
    ("EOF while parsing an object", "it ends inside an object"),
    ("EOF while parsing a value", "it ends where a value should follow"),
    ("expected value", "a value is wanted"),
    ("expected ident", "a value is wanted"),
    ("expected `:`", "`:` is wanted"),
    ("expected `,` or `]`", "`,` or `]` is wanted"),
    ("expected `,` or `}`", "`,` or `}` is wanted"),
    ("key must be a string", "a member's name in double quotes is wanted"),
    ("trailing comma", "a comma stands before a closing bracket"),
    ("trailing characters", "something follows the end"),
    ("number out of range", "a number is out of range"),
    ("recursion limit exceeded", "it is nested too deeply"),
    (
        "control character (\\u0000-\\u001F) found while parsing a string",
        "a text holds a line end or control character",
    ),
];

/// Says what is wrong and where; what the parser says of values of a wrong type is left as it is.
#[must_use]
pub fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (what, is_placed) = text.strip_suffix(&place).map_or((text.as_str(), false), |what| (what, true));
    let said = SAID.iter().find(|(parser, _)| *parser == what).map_or(what, |(_, said)| said);
    match (is_placed, error.line(), error.column()) {
        (false, ..) => said.to_owned(),
        (true, 1, column) => format!("{said}, at character {}", column.max(1)),
        (true, line, column) => format!("{said}, at line {line}, character {}", column.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_syntax_is_told_in_plain_words() {
        for (text, want) in [
            ("{\"a", "it ends inside a text, at character 3"),
            ("[1", "it ends inside a list, at character 2"),
            ("{", "it ends inside an object, at character 1"),
            ("{\"a\":", "it ends where a value should follow, at character 5"),
            ("run my job", "a value is wanted, at character 1"),
            ("nul", "it ends where a value should follow, at character 3"),
            ("{\"a\" 1}", "`:` is wanted, at character 6"),
            ("[1 2]", "`,` or `]` is wanted, at character 4"),
            ("{\"a\":1 \"b\"}", "`,` or `}` is wanted, at character 8"),
            ("{a:1}", "a member's name in double quotes is wanted, at character 2"),
            ("{\n\"a\":1,\n}", "a comma stands before a closing bracket, at line 3, character 1"),
            ("{} {}", "something follows the end, at character 4"),
            ("1e999", "a number is out of range, at character 5"),
            ("[\"a\n\"]", "a text holds a line end or control character, at line 2, character 1"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert_eq!(json_fault(&error), want, "{text}");
        }
    }
}
