//! Mutations: small damage to good input, pieces of one sample in another, and the words that readers trip over.

use osprey_tests::chaos::random::Random;

/// Longest input. A message may have 1 MiB; most faults show in far less.
const BYTES_MAX: usize = 64 * 1024;

/// What is put in as it is.
const WORDS: [&str; 34] = [
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "9223372036854775807",
    "18446744073709551616",
    "-0.0",
    "NaN",
    "\"\"",
    "{}",
    "[]",
    "[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{202e}",
    "\u{1b}[2J",
    "\r\n",
    "\u{feff}",
    "🦅",
    "osprey:job-id",
    "osprey:array-index",
    "P1Y",
    "99999999999999999h",
    "1e308TB",
    "((((((((",
    "job.",
    "has(",
    "\"\"\"",
    "=cmd|' /C calc'!A0",
    "../../../../etc/passwd",
    "<script>",
];

/// An input made of one or two samples.
pub fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(corpus).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        change(&mut input, corpus, random);
    }
    input.truncate(BYTES_MAX);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.index(input.len() + 1);
    match random.below(10) {
        0 => flip(input, random),
        1 => put(input, at, &[u8::try_from(random.below(256)).unwrap_or(0)]),
        2 | 3 => put(input, at, random.pick(&WORDS).map_or(&b""[..], |word| word.as_bytes())),
        4 => drop(input.drain(piece(input.len(), random))),
        5 => double(input, at, random),
        6 => splice(input, at, corpus, random),
        7 => number(input, random),
        8 => repeat(input, at, random),
        _ => input.truncate(at),
    }
}

/// A range of a length that is mostly short.
fn piece(len: usize, random: &mut Random) -> std::ops::Range<usize> {
    let from = random.index(len + 1);
    let most = if random.chance(200_000) { len } else { 16 };
    let to = from + random.index(most.min(len - from) + 1);
    from..to
}

fn put(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

fn flip(input: &mut [u8], random: &mut Random) {
    let at = random.index(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn double(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let copy = input.get(piece(input.len(), random)).unwrap_or_default().to_vec();
    put(input, at, &copy);
}

fn splice(input: &mut Vec<u8>, at: usize, corpus: &[Vec<u8>], random: &mut Random) {
    let Some(other) = random.pick(corpus) else { return };
    let copy = other.get(piece(other.len(), random)).unwrap_or_default().to_vec();
    put(input, at, &copy);
}

/// Replaces a run of digits.
fn number(input: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = (0..input.len()).filter(|at| input.get(*at).is_some_and(u8::is_ascii_digit)).collect();
    let Some(from) = random.pick(&starts).copied() else { return };
    let len = input.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let word = random.pick(&["0", "-1", "4294967296", "9223372036854775808", "1e400", "0.1"]).copied().unwrap_or("0");
    input.splice(from..from + len, word.bytes());
}

/// Something short many times: nesting, long lists, long words.
fn repeat(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let unit = random.pick(&["[", "{\"a\":", "(", "a", "!", "\u{301}", ",", "0", "\"", "\\"]).copied().unwrap_or("[");
    let times = 1 << random.below(14);
    put(input, at, unit.repeat(times).as_bytes());
}
