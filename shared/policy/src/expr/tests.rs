use proptest::prelude::*;

use super::*;
use crate::problem::PolicyErrorCode as Code;

fn compiled(text: &str, wanted: Wanted) -> Expr {
    Expr::compile(text, wanted, &Guards::new()).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// Code, offset, sentence and help of the first mistake.
fn mistake(text: &str, wanted: Wanted) -> (Code, usize, String, Option<String>) {
    let errors = Expr::compile(text, wanted, &Guards::new()).err().unwrap_or_else(|| panic!("{text} is fine"));
    let first = errors.into_iter().next().expect("a mistake");
    (first.code, first.offset, first.message, first.help)
}

fn facts() -> Facts {
    let mut facts = Facts { now: "2026-11-30T09:30:00Z".parse().expect("a time"), ..Facts::default() };
    facts.job.gpus = 8;
    facts.job.nodes = 1;
    facts.job.name = "urgent-train".to_owned();
    facts.job.metadata.environment = Some("production".to_owned());
    facts.job.metadata.max_duration = Some(7200);
    facts.job.tags.insert("cost-center".to_owned(), "42".to_owned());
    facts.lineage.failures = 3;
    facts.team.waste_ratio = 0.25;
    facts
}

fn holds(text: &str) -> Result<bool, String> {
    let expr = compiled(text, Wanted::Bool);
    expr.holds(&expr.because(&facts()))
}

fn amount(text: &str) -> Result<i64, String> {
    let expr = compiled(text, Wanted::Int);
    expr.amount(&expr.because(&facts()))
}

#[test]
fn conditions_hold_or_do_not() {
    for (text, want) in [
        ("true", true),
        ("job.gpus > 4", true),
        ("job.gpus == 8 && job.nodes == 1", true),
        ("!(job.gpus > 4)", false),
        ("job.environment == 'production'", true),
        ("job.workload in ['inference', 'interactive']", false),
        ("job.gpus in [1, 2, 4, 8]", true),
        ("job.name.startsWith('urgent') && job.name.endsWith('train') && job.name.contains('-')", true),
        ("has(job.max_duration) && job.max_duration >= duration('2h')", true),
        ("has(job.dataset_size) && job.dataset_size > size('1TB')", false),
        ("'cost-center' in job.tags && job.tags['cost-center'] == '42'", true),
        ("has(job.tags.team) && job.tags.team == 'x'", false),
        ("now.weekday == 'monday' && now.hour >= 9 && now.hour < 17", true),
        ("team.waste_ratio > 0.15", true),
        ("team.waste_ratio > 0 && 1 > team.waste_ratio", true),
        ("lineage.retry_of_preempted == false", true),
        ("len(job.name) == 12 && size(job.name) == 12 && len(['a']) == 1", true),
        ("min(job.gpus, 4) == 4 && max(1, 2, job.gpus) == 8 && max(team.waste_ratio, 0.5) == 0.5", true),
        ("job.gpus > 4 ? job.nodes == 1 : false", true),
        ("job.gpus % 2 == 0 // even", true),
    ] {
        assert_eq!(holds(text), Ok(want), "{text}");
    }
}

#[test]
fn amounts_are_computed() {
    for (text, want) in [
        ("-10 * lineage.failures", -30),
        ("-lineage.failures", -3),
        ("100 - max(0, job.gpus - 4) * 5", 80),
        ("job.gpus / 3 + job.gpus % 3", 4),
        ("has(job.sla) ? job.sla : 0", 0),
        ("!has(job.sla) ? 7 : job.sla", 7),
    ] {
        assert_eq!(amount(text), Ok(want), "{text}");
    }
}

#[test]
fn an_absent_text_is_empty_and_an_absent_flag_is_false() {
    for text in [
        "job.workload == ''",
        "job.workload != 'inference'",
        "!job.preemptible",
        "!has(job.workload)",
        "!has(job.preemptible)",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
}

/// LAYOUT §8: whole numbers bound from JSON would be unsigned, and `8 - 9` or `-10 * failures` an error.
#[test]
fn facts_are_signed_numbers() {
    assert_eq!(amount("job.gpus - 9"), Ok(-1));
    assert_eq!(holds("job.gpus / 8 == 1 && -1 * job.gpus < 0"), Ok(true));
}

/// LAYOUT §8: an absent tag is an error in CEL and not false.
#[test]
fn an_absent_tag_is_refused_unless_guarded() {
    let unguarded = |name: &str| {
        (
            Code::UnguardedFact,
            0,
            format!("`{name}` may be absent"),
            Some(format!("write `has({name}) && …` in the same condition")),
        )
    };
    assert_eq!(mistake("job.tags.x == 'a'", Wanted::Bool), unguarded("job.tags.x"));
    assert_eq!(mistake("job.tags['x'] == 'a'", Wanted::Bool), unguarded("job.tags[\"x\"]"));
}

#[test]
fn a_guard_counts_only_where_it_holds() {
    for (text, fine) in [
        ("has(job.sla) && job.sla < 60", true),
        ("job.sla < 60 && has(job.sla)", true),
        ("!has(job.sla) || job.sla < 60", true),
        ("has(job.sla) && (job.gpus > 1 || job.sla < 60)", true),
        ("has(job.sla) && has(job.tags.a) && job.sla < 60 && job.tags.a == ''", true),
        ("!(has(job.sla) && job.gpus > 1) || job.sla < 60", true),
        ("has(job.sla) ? job.sla < 60 : true", true),
        ("has(job.sla) || job.sla < 60", false),
        ("!has(job.sla) && job.sla < 60", false),
        ("has(job.max_duration) && job.sla < 60", false),
        ("(has(job.sla) || job.gpus > 1) && job.sla < 60", false),
        ("has(job.sla) ? true : job.sla < 60", false),
        ("has(job.sla) == true && job.sla < 60", false),
        ("'a' in job.tags && job.tags.b == ''", false),
    ] {
        assert_eq!(Expr::compile(text, Wanted::Bool, &Guards::new()).is_ok(), fine, "{text}");
    }
}

/// What the check lets through never fails for a fact that isn't there.
#[test]
fn a_guard_in_either_order_works_when_the_fact_is_absent() {
    for text in ["has(job.sla) && job.sla < 60", "job.sla < 60 && has(job.sla)", "!has(job.sla) && job.gpus > 99"] {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
    assert_eq!(holds("job.sla < 60 || !has(job.sla)"), Ok(true));
}

#[test]
fn what_passes_the_check_fails_only_by_zero_and_beyond_64_bits() {
    for (text, why) in [
        ("100 / (lineage.failures - 3)", "division by zero"),
        ("100 % (lineage.failures - 3)", "division by zero"),
        ("9223372036854775807 + job.gpus", "a number beyond 64 bits"),
        ("9223372036854775807 * job.gpus", "a number beyond 64 bits"),
    ] {
        assert_eq!(amount(text), Err(why.to_owned()), "{text}");
    }
}

#[test]
fn a_fact_that_is_no_number_is_told_and_not_compared() {
    let mut facts = facts();
    facts.team.waste_ratio = f64::NAN;
    let expr = compiled("team.waste_ratio > 0.15", Wanted::Bool);
    assert_eq!(expr.holds(&expr.because(&facts)), Err("a fact is no number".to_owned()));
}

#[test]
fn mistakes_are_told_with_their_place_and_a_way_out() {
    let some = |text: &str| Some(text.to_owned());
    for (text, code, offset, message, help) in [
        ("job.gpus = 8", Code::ExprSyntax, 9, "unexpected `=`", some("write `==` to compare")),
        ("job.gpus === 8", Code::ExprSyntax, 11, "unexpected `=`", some("write `==` to compare")),
        ("job.gpus => 8", Code::ExprSyntax, 9, "unexpected `=>`", some("write `>=`")),
        ("job.preemptible & true", Code::ExprSyntax, 16, "unexpected `&`", some("write `&&` for and")),
        ("job.preemptible and true", Code::ExprSyntax, 16, "unexpected `and`", some("write `&&` for and")),
        ("not job.preemptible", Code::ExprSyntax, 4, "unexpected `job.preemptible`", some("write `!` for not")),
        ("", Code::ExprSyntax, 0, "the expression is empty", some("write `true` for always")),
        ("job.gpus >", Code::ExprSyntax, 10, "the expression ends too early", None),
        ("(job.gpus > 1", Code::ExprSyntax, 13, "the expression ends too early", None),
        ("(true ? 1) == 1", Code::ExprSyntax, 9, "unexpected `)`", None),
        ("true ? 1", Code::ExprSyntax, 8, "the expression ends too early", None),
        ("job.gpus <> 1", Code::ExprSyntax, 10, "unexpected `>`", some("write `!=` for unequal")),
        ("for == 1", Code::ExprSyntax, 0, "unexpected `for`", None),
        ("job.team == 'a", Code::ExprSyntax, 12, "a text without its closing quote, or with an unknown escape", None),
        (
            "job.gpus > 99999999999999999999",
            Code::ExprSyntax,
            11,
            "`99999999999999999999` is no number that fits",
            None,
        ),
        (
            "lineage.depht > 3",
            Code::UnknownFact,
            0,
            "unknown fact `lineage.depht`",
            some("did you mean `lineage.depth`?"),
        ),
        ("true && jobs.gpus > 3", Code::UnknownFact, 8, "unknown fact `jobs.gpus`", some("did you mean `job.gpus`?")),
        (
            "job.colour == ''",
            Code::UnknownFact,
            0,
            "unknown fact `job.colour`",
            some("docs/policy.md lists every fact"),
        ),
        (
            "job.team == vision",
            Code::UnknownFact,
            12,
            "unknown fact `vision`",
            some("write text in quotes: `\"vision\"`"),
        ),
        (
            "team == 'a'",
            Code::UnknownFact,
            0,
            "`team` is no fact by itself",
            some("name a member, such as `team.gpus_running`, `team.gpu_hours_day`, `team.gpu_hours_week`"),
        ),
        (
            "len(job.tags) > 1",
            Code::UnknownFact,
            4,
            "`job.tags` is no value",
            some("name a tag: `job.tags.x` or `job.tags[\"x\"]`"),
        ),
        (
            "job.gpus == \"8\"",
            Code::TypeMismatch,
            9,
            "`==` can't compare a whole number with text",
            some("leave the quotes away"),
        ),
        ("job.environment > 'a'", Code::TypeMismatch, 16, "`>` compares numbers, not text", None),
        ("job.gpus && true", Code::TypeMismatch, 0, "`&&` takes true or false, not a whole number", None),
        ("true || job.team", Code::TypeMismatch, 8, "`||` takes true or false, not text", None),
        ("!job.gpus", Code::TypeMismatch, 0, "`!` takes true or false, not a whole number", None),
        (
            "job.team in 'abc'",
            Code::TypeMismatch,
            9,
            "`in` looks into a list, not into text",
            some("write a list such as `[\"a\", \"b\"]`"),
        ),
        ("job.gpus in ['1']", Code::TypeMismatch, 9, "`in` can't look for a whole number in a list of texts", None),
        ("job.gpus in [1, 'b']", Code::TypeMismatch, 12, "a list of values that aren't of one type", None),
        ("job.gpus in []", Code::TypeMismatch, 12, "an empty list", some("nothing is in it")),
        ("job.team + 'a' == 'b'", Code::TypeMismatch, 9, "`+` takes numbers, not text", None),
        (
            "job.gpus * 1.5 > 3.0",
            Code::TypeMismatch,
            9,
            "`*` can't take a whole number and a number with a fraction",
            some("write `2.0` for the 2 that goes with fractions"),
        ),
        ("job.gpus.contains('8')", Code::TypeMismatch, 0, "`contains` takes text, not a whole number", None),
        (
            "startsWith(job.name, 'a')",
            Code::TypeMismatch,
            0,
            "`startsWith` is called wrongly",
            some("write `job.name.contains(\"urgent\")`"),
        ),
        (
            "job.gpus",
            Code::TypeMismatch,
            0,
            "a condition must be true or false, not a whole number",
            some("compare it with something"),
        ),
        ("true ? 1 : 'a'", Code::TypeMismatch, 5, "`? :` can't take a whole number and text", None),
        ("has(5)", Code::TypeMismatch, 0, "`has` takes a fact", some("write `has(job.sla)`")),
        ("has(job.slo)", Code::UnknownFact, 4, "unknown fact `job.slo`", some("did you mean `job.sla`?")),
        ("job.gpus / 0 > 1", Code::InvalidValue, 9, "division by zero", None),
        (
            "duration('4 apples') > 1",
            Code::InvalidValue,
            9,
            "`4 apples` is no duration",
            some("write `duration(\"4h30m\")`"),
        ),
        (
            "size('4 apples') > 1",
            Code::InvalidValue,
            5,
            "`4 apples` is no size",
            some("write `size(\"500GB\")` or `size(\"2TiB\")`; a text's length is `len`"),
        ),
        (
            "job.name.matches('a')",
            Code::UnknownFunction,
            9,
            "unknown function `matches`",
            some("use `startsWith`, `endsWith` or `contains`"),
        ),
        (
            "[1].exists(x, x > 0)",
            Code::UnknownFunction,
            4,
            "unknown function `exists`",
            some("there are no loops; write `in` with a list"),
        ),
        ("lenn(job.name) > 1", Code::UnknownFunction, 0, "unknown function `lenn`", some("did you mean `len`?")),
        (
            "8u == 8u",
            Code::ExprUnsupported,
            0,
            "an unsigned number is not part of the policy language",
            some("leave the `u` away"),
        ),
        (
            "job.team == null",
            Code::ExprUnsupported,
            12,
            "`null` is not part of the policy language",
            some("ask with `has`"),
        ),
        (
            "{'a': 1} == {'a': 1}",
            Code::ExprUnsupported,
            0,
            "a map is not part of the policy language",
            some("compare facts with single values"),
        ),
        (
            "'é' == job.team && job.gpu > 1",
            Code::UnknownFact,
            20,
            "unknown fact `job.gpu`",
            some("did you mean `job.gpus`?"),
        ),
    ] {
        assert_eq!(mistake(text, Wanted::Bool), (code, offset, message.to_owned(), help), "{text}");
    }
}

#[test]
fn several_mistakes_of_one_expression_are_told_together() {
    let errors = Expr::compile("job.gpu > 4 && job.enviroment == 'a' && foo(1)", Wanted::Bool, &Guards::new());
    let offsets: Vec<_> = errors.expect_err("mistakes").iter().map(|error| error.offset).collect();
    assert_eq!(offsets, [0, 15, 40]);
}

#[test]
fn an_amount_is_a_whole_number() {
    let (code, _, message, _) = mistake("job.gpus > 4", Wanted::Int);
    assert_eq!((code, message.as_str()), (Code::TypeMismatch, "an amount must be a whole number, not true or false"));
}

#[test]
fn the_longest_expression_is_read_and_a_longer_one_refused() {
    let text = |bytes: usize| format!("job.name == '{}'", "x".repeat(bytes - 14));
    assert!(Expr::compile(&text(EXPR_BYTES_MAX), Wanted::Bool, &Guards::new()).is_ok());
    let (code, _, message, _) = mistake(&text(EXPR_BYTES_MAX + 1), Wanted::Bool);
    assert_eq!((code, message.as_str()), (Code::ExprTooLarge, "the expression has 2001 bytes, more than 2000"));
}

/// Parentheses are bounded by the parser, chains by us; neither may end the stack.
#[test]
fn deep_expressions_are_refused_and_wide_ones_read() {
    let sum = |terms: usize| format!("{} > 0", vec!["1"; terms].join("+"));
    assert!(Expr::compile(&sum(60), Wanted::Bool, &Guards::new()).is_ok());
    for text in [
        sum(900),
        format!("{}true{}", "(".repeat(900), ")".repeat(900)),
        format!("{}1{} == 1", "[".repeat(900), "]".repeat(900)),
        format!("{}1{} == 1", "max(1,".repeat(90), ")".repeat(90)),
        format!("job{}", ".a".repeat(900)),
    ] {
        let errors = Expr::compile(&text, Wanted::Bool, &Guards::new()).err().unwrap_or_else(|| panic!("{text:.20}"));
        assert!(!errors.is_empty());
    }
    // The parser folds pairs of `!`.
    assert!(Expr::compile(&format!("{}true", "!".repeat(1900)), Wanted::Bool, &Guards::new()).is_ok());
    let wide = vec!["job.gpus == 8"; 100].join(" || ");
    assert!(Expr::compile(&wide, Wanted::Bool, &Guards::new()).is_ok());
}

#[test]
fn facts_read_are_named_once_and_in_order() {
    let expr = compiled("has(job.sla) && job.sla < 60 && job.gpus > 1 && 'a b' in job.tags", Wanted::Bool);
    let because = expr.because(&facts());
    assert_eq!(
        because.into_iter().collect::<Vec<_>>(),
        [
            ("job.gpus".to_owned(), FactValue::Int(8)),
            ("job.sla".to_owned(), FactValue::Absent),
            ("job.tags.a b".to_owned(), FactValue::Absent),
        ]
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_compiler(text in ".{0,60}") {
        let _ = Expr::compile(&text, Wanted::Bool, &Guards::new());
    }

    #[test]
    fn no_text_near_an_expression_breaks_the_compiler(
        parts in prop::collection::vec(prop::sample::select(vec![
            "job.gpus", "job.sla", "job.tags", ".x", "has(", ")", "(", "[", "]", "\"a\"", "'", "&&", "||", "!", "==", "=", "<", "?", ":",
            "1", "-", "+", "2.5", "size(", "duration(", "max(", ",", "in", "true", "null", "{", "}", "é", "\n", "`a`", "8u", "b'x'", ".matches(", ".",
        ]), 0..14)
    ) {
        let text = parts.join(" ");
        if let Ok(expr) = Expr::compile(&text, Wanted::Bool, &Guards::new()) {
            // What compiles evaluates, on facts that are all absent too, or fails for one of two reasons.
            if let Err(why) = expr.holds(&expr.because(&Facts::default())) {
                prop_assert!(["division by zero", "a number beyond 64 bits"].contains(&why.as_str()), "{text}: {why}");
            }
        }
    }
}
