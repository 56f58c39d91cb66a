//! Lists in pages.

use crate::failure::Failure;

/// What a caller asks of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page<'a> {
    /// Most entries wanted.
    pub max_results: Option<i64>,
    /// Token of the page before.
    pub token: Option<&'a str>,
}

/// Cuts a list into pages of at most `most` entries, which is the default too; answers one page and the token of the
/// next.
///
/// # Errors
/// A ClientException for a number below 1 or a token that no page gave.
pub fn cut<T>(all: Vec<T>, page: Page<'_>, most: usize) -> Result<(Vec<T>, Option<String>), Failure> {
    let size = match page.max_results {
        None => most,
        Some(n) => usize::try_from(n)
            .ok()
            .filter(|n| *n >= 1)
            .map(|n| n.min(most))
            .ok_or_else(|| Failure::client(format!("maxResults must be at least 1, got {n}")))?,
    };
    let start = page.token.map_or(Ok(0), parse)?;
    let more = all.len() > start.saturating_add(size);
    let next = more.then(|| format!("2-{}", start + size));
    Ok((all.into_iter().skip(start).take(size).collect(), next))
}

fn parse(token: &str) -> Result<usize, Failure> {
    let start = token.strip_prefix("2-").and_then(|start| start.parse().ok());
    start.ok_or_else(|| Failure::client("nextToken is invalid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_a_list_once() {
        let mut token: Option<String> = None;
        let mut seen = Vec::new();
        for pages in 1.. {
            let page = Page { max_results: Some(2), token: token.as_deref() };
            let (part, next) = cut((0..5).collect(), page, 100).unwrap();
            seen.extend(part);
            token = next;
            if token.is_none() {
                assert_eq!(pages, 3);
                break;
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_wrong_page_is_refused() {
        let refusal = |page| cut(vec![1], page, 100).unwrap_err().message;
        assert_eq!(refusal(Page { max_results: Some(0), token: None }), "maxResults must be at least 1, got 0");
        assert_eq!(refusal(Page { max_results: None, token: Some("1-0") }), "nextToken is invalid");
        let (all, next) = cut(vec![1, 2], Page { max_results: Some(1_000), token: None }, 1).unwrap();
        assert_eq!((all, next.as_deref()), (vec![1], Some("2-1")));
    }
}
