//! The part of CloudWatch's metric math that the template uses: `IF`, comparisons, `AND`, and the four operations.

use std::collections::BTreeMap;

/// What an expression gives for these metrics; nothing where one of its metrics has no value.
pub fn formula(expression: &str, metrics: &BTreeMap<&str, f64>) -> Option<f64> {
    let mut reader = Reader { words: words(expression), at: 0, metrics };
    let value = reader.both();
    assert_eq!(reader.at, reader.words.len(), "{expression} isn't read to its end: {:?}", reader.words);
    value
}

/// Names, numbers and signs.
fn words(expression: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let mut left = expression.trim_start();
    let mut words = Vec::new();
    while let Some(first) = left.chars().next() {
        let of_a_word = left.find(|c| !is_word(c)).unwrap_or(left.len());
        let of_a_sign =
            [">=", "<=", "=="].iter().find(|sign| left.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len());
        let (word, rest) = left.split_at(if is_word(first) { of_a_word } else { of_a_sign });
        words.push(word);
        left = rest.trim_start();
    }
    words
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    metrics: &'a BTreeMap<&'a str, f64>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> &'a str {
        let word = self.words.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        word
    }

    /// Takes the next word if it is one of these.
    fn take(&mut self, any: &[&'static str]) -> Option<&'static str> {
        let next = self.words.get(self.at)?;
        let found = any.iter().find(|word| *word == next).copied();
        self.at += usize::from(found.is_some());
        found
    }

    /// Signs of one rank, from left to right.
    fn rank(
        &mut self,
        signs: &[&'static str],
        below: fn(&mut Self) -> Option<f64>,
        of: fn(&str, f64, f64) -> f64,
    ) -> Option<f64> {
        let mut value = below(self);
        while let Some(sign) = self.take(signs) {
            let other = below(self);
            value = value.zip(other).map(|(one, other)| of(sign, one, other));
        }
        value
    }

    fn both(&mut self) -> Option<f64> {
        self.rank(&["AND"], Self::compared, |_, one, other| truth(one != 0.0 && other != 0.0))
    }

    fn compared(&mut self) -> Option<f64> {
        self.rank(&[">=", "<=", "==", ">", "<"], Self::sum, |sign, one, other| {
            truth(match sign {
                ">=" => one >= other,
                "<=" => one <= other,
                "==" => (one - other).abs() < f64::EPSILON,
                ">" => one > other,
                _ => one < other,
            })
        })
    }

    fn sum(&mut self) -> Option<f64> {
        self.rank(&["+", "-"], Self::product, |sign, one, other| if sign == "+" { one + other } else { one - other })
    }

    fn product(&mut self) -> Option<f64> {
        self.rank(&["*", "/"], Self::atom, |sign, one, other| if sign == "*" { one * other } else { one / other })
    }

    fn atom(&mut self) -> Option<f64> {
        let word = self.next();
        if word == "IF" {
            assert_eq!(self.next(), "(");
            let condition = self.both();
            assert_eq!(self.next(), ",");
            let then = self.both();
            assert_eq!(self.next(), ",");
            let otherwise = self.both();
            assert_eq!(self.next(), ")");
            return if condition? == 0.0 { otherwise } else { then };
        }
        word.parse().ok().or_else(|| self.metrics.get(word).copied())
    }
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[test]
fn expressions_are_worked_out_by_their_ranks() {
    let metrics = BTreeMap::from([("a", 6.0), ("b", 3.0)]);
    for (expression, want) in [
        ("a + b * 2", Some(12.0)),
        ("100 * a / b", Some(200.0)),
        ("IF(a >= 6 AND b == 3, a - 1, 0)", Some(5.0)),
        ("IF(a > 6, c, 0)", Some(0.0)),
        ("IF(a > 5, c, 0)", None),
        ("IF(c > 5, 1, 0)", None),
    ] {
        assert_eq!(formula(expression, &metrics), want, "{expression}");
    }
}
