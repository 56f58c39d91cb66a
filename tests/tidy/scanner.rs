//! The scanner that the other rules stand on.

use osprey_tests::source::{Function, Source, functions, words};

#[test]
fn comments_and_literals_are_told_from_code() {
    for (source, code, comments) in [
        ("a // b\nc", "a     \nc", "  // b\n "),
        ("a /* b /* c */ d */ e", "a                   e", "  /* b /* c */ d */  "),
        ("x = \"fn // \\\" {\";", "x =             ;", "                 "),
        ("r#\"a \" b\"# c", "           c", "            "),
        ("bar\"s\"", "bar   ", "      "),
        ("'{' 'a fn<'a> '\\'' '\\u{1}' b", "    'a fn<'a>              b", "                            "),
    ] {
        let taken = Source::new(source);
        assert_eq!((taken.code.as_str(), taken.comments.trim_end()), (code, comments.trim_end()), "{source}");
    }
}

#[test]
fn functions_are_counted_from_fn_to_their_brace() {
    let code = "fn a() {}\nfn b(\n    x: [u8; 4],\n) -> u8 {\n    if x { y }\n}\ntrait T { fn c(&self); }\n";
    let want =
        [Function { name: "a".to_owned(), line: 1, lines: 1 }, Function { name: "b".to_owned(), line: 2, lines: 5 }];
    assert_eq!(functions(code), want);
}

#[test]
fn tests_are_taken_out_and_lines_stay() {
    let source = Source::new("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n");
    let code = source.code_without_tests();
    assert_eq!(functions(&code).iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(code.lines().count(), 6);
}

#[test]
fn identifiers_are_split_into_words() {
    let found: Vec<_> = words("let maxWait = MAX_wait2ms;\nHTTPServer").into_iter().map(|(_, word)| word).collect();
    assert_eq!(found, ["let", "max", "wait", "max", "wait", "ms", "httpserver"]);
}
