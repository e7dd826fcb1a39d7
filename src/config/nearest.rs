//! "Did you mean …?": the known word nearest to an unknown one.
//!
//! Decides: the distance is the restricted one of Damerau and Levenshtein (insert, delete, replace, swap of
//! neighbours, nothing edited twice), as typing errors are of these four kinds. A word more than a third of its
//! length away is noise, and is not suggested.
//! Limits: words over `WORD_CHARS_MAX` characters are not compared: the work is the product of both lengths.

/// Longest word compared, in characters; the longest key is far below.
const WORD_CHARS_MAX: usize = 64;

/// The nearest of `known`, the first of several; `None` when none is near.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().nth(WORD_CHARS_MAX).is_some() {
        return None;
    }
    let near = |(distance, candidate): &(usize, &str)| *distance <= (candidate.len() / 3).max(1);
    known
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits that make `left` into `right`.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (at(&last, j) + usize::from(l != r)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && left.get(i - 1) == Some(r) && right.get(j - 1) == Some(l);
            if swapped {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (left, right, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("deadlien", "deadline", 1),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
            assert_eq!(distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn guesses_only_what_is_near() {
        let known = ["connect_timeout", "tls_timeout", "deadline"];
        assert_eq!(nearest("conect_timeout", known.into_iter()), Some("connect_timeout"));
        assert_eq!(nearest("deadlien", known.into_iter()), Some("deadline"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), known.into_iter()), None);
    }
}
