//! URLs inside attribute values that contain more than a URL: `<meta http-equiv=refresh content>` and `srcset`.
//!
//! Source: WHATWG HTML "shared declarative refresh steps" (section 4.2.5.3) and "parsing a srcset attribute"
//! (section 4.8.4.2.1). Invariants: one pass, nothing allocated, at most one candidate for each byte.

use super::tokenizer::is_space;

/// The URL of a refresh pragma; `None` when it names none (then the page refreshes itself) or is invalid.
pub(super) fn refresh_url(content: &str) -> Option<&str> {
    let content = trim_space(content);
    let time = content.trim_start_matches(|one: char| one.is_ascii_digit());
    if time.len() == content.len() && !time.starts_with('.') {
        return None;
    }
    let rest = time.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
    if !rest.starts_with([';', ',']) && !rest.starts_with(is_space_char) {
        return None;
    }
    let rest = trim_space(rest);
    let whole = trim_space(rest.strip_prefix([';', ',']).unwrap_or(rest));
    if whole.is_empty() {
        return None;
    }
    let url = match url_equals(whole) {
        Prefix::Whole => trim_space(whole.get("url".len()..)?).strip_prefix('=').map(trim_space)?,
        Prefix::None => whole,
        // A `u` that does not continue as `url=` is the start of the URL, and quotes are then not special.
        Prefix::Broken => return Some(whole),
    };
    let Some(quote) = url.chars().next().filter(|one| matches!(one, '"' | '\'')) else { return Some(url) };
    let inside = url.get(1..)?;
    Some(inside.split(quote).next().unwrap_or(inside))
}

enum Prefix {
    Whole,
    Broken,
    None,
}

/// Whether `text` starts with `url`, spaces, `=`.
fn url_equals(text: &str) -> Prefix {
    if !text.starts_with(['u', 'U']) {
        return Prefix::None;
    }
    match text.split_at_checked(3) {
        Some((name, rest)) if name.eq_ignore_ascii_case("url") && trim_space(rest).starts_with('=') => Prefix::Whole,
        _ => Prefix::Broken,
    }
}

/// The URLs of a `srcset`, in order; candidates with invalid descriptors are skipped.
pub(super) fn srcset_urls(srcset: &str) -> impl Iterator<Item = &str> {
    Candidates { rest: srcset }
}

struct Candidates<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Candidates<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let rest = self.rest.trim_start_matches(|one| is_space_char(one) || one == ',');
            let (url, after) = rest.split_at_checked(space_at(rest.as_bytes()))?;
            if url.is_empty() {
                self.rest = "";
                return None;
            }
            let bare = url.trim_end_matches(',');
            if bare.len() < url.len() {
                self.rest = after;
                return Some(bare);
            }
            let end = descriptors_end(after);
            let (descriptors, after) = after.split_at_checked(end)?;
            self.rest = after.strip_prefix(',').unwrap_or(after);
            if are_descriptors(descriptors) {
                return Some(url);
            }
        }
    }
}

/// Whether `is` holds for one of the space-separated tokens of `text`.
pub(super) fn any_token(mut text: &str, mut is: impl FnMut(&str) -> bool) -> bool {
    while let Some((token, behind)) = text.split_at_checked(space_at(text.as_bytes())) {
        if !token.is_empty() && is(token) {
            return true;
        }
        let Some(behind) = behind.get(1..) else { break };
        text = behind;
    }
    false
}

/// The position of the first space, or the end. URLs are long, so this checks eight bytes at once.
fn space_at(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let mut at = 0;
    for eight in bytes.as_chunks::<8>().0 {
        let eight = u64::from_le_bytes(*eight);
        // The high bit of each byte that is at most a space; borrows corrupt no bit below the first such byte.
        let low = eight.wrapping_sub(ONES * 0x21) & !eight & ONES << 7;
        if low != 0 {
            at += low.trailing_zeros() as usize / 8;
            break;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len())
}

/// Up to the first comma outside parentheses; these do not nest.
fn descriptors_end(text: &str) -> usize {
    let mut inside = false;
    text.bytes()
        .position(|byte| {
            match byte {
                b'(' => inside = true,
                b')' => inside = false,
                _ => {}
            }
            byte == b',' && !inside
        })
        .unwrap_or(text.len())
}

/// One width or one density, or a width with a height.
fn are_descriptors(text: &str) -> bool {
    let (mut width, mut density, mut height) = (false, false, false);
    for descriptor in text.split(is_space_char).filter(|one| !one.is_empty()) {
        let Some(number) = descriptor.get(..descriptor.len() - 1) else { return false };
        let seen = match descriptor.bytes().next_back() {
            Some(b'w') if is_positive(number) && !density => &mut width,
            Some(b'h') if is_positive(number) && !density => &mut height,
            Some(b'x') if is_float(number) && !width && !height => &mut density,
            _ => return false,
        };
        if std::mem::replace(seen, true) {
            return false;
        }
    }
    !height || width
}

fn is_positive(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit()) && number.bytes().any(|byte| byte != b'0')
}

/// A valid floating-point number (section 2.3.4.3) that is not negative.
fn is_float(number: &str) -> bool {
    let digits_only = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (true, mantissa),
        None => (false, mantissa),
    };
    let zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole.is_empty() || digits_only(whole)) && digits_only(fraction),
        None => digits_only(mantissa),
    };
    let exponent = exponent.is_none_or(|text| digits_only(text.strip_prefix(['+', '-']).unwrap_or(text)));
    mantissa && exponent && (!negative || zero) && number.parse().is_ok_and(f64::is_finite)
}

fn trim_space(text: &str) -> &str {
    text.trim_start_matches(is_space_char)
}

/// ASCII whitespace.
pub(super) fn is_space_char(one: char) -> bool {
    u8::try_from(one).is_ok_and(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn refreshes() {
        for (content, url) in [
            ("0;url=a b", Some("a b")),
            (" 5 ; URL = 'x\"y' z", Some("x\"y")),
            ("1.5,\"q\"r", Some("q")),
            (".;x", Some("x")),
            ("5 x", Some("x")),
            ("0; ur=l", Some("ur=l")),
            ("0; url", Some("url")),
            ("0; urlé=", Some("urlé=")),
            ("0; ué", Some("ué")),
            ("0;url=", Some("")),
            ("0;url 'a'", Some("url 'a'")),
            ("0;'a", Some("a")),
            ("0;;a", Some(";a")),
            ("5", None),
            ("5;", None),
            ("x;url=a", None),
            ("5x;url=a", None),
            ("-1;url=a", None),
            ("", None),
        ] {
            assert_eq!(refresh_url(content), url, "{content}");
        }
    }

    #[test]
    fn srcsets() {
        for (srcset, urls) in [
            ("a", "a"),
            ("a 1x, b 2x", "a b"),
            (" , a 10w,,b 20w 5h", "a b"),
            ("a,b 1x", "a,b"),
            ("a, b", "a b"),
            ("a,, b 1q, c .5x, d 1.x, e -1x, f 0w, g -0x", "a c g"),
            ("a 1x 2x, b 1w 1x, c 1h, d (x, y) , e 1e3x, f 1e400x, g 1e-400x", "e g"),
            ("data:,x 1x, b", "data:,x b"),
            (",", ""),
            ("", ""),
            ("a é, b x, c w", ""),
        ] {
            assert_eq!(srcset_urls(srcset).collect::<Vec<_>>().join(" "), urls, "{srcset}");
        }
    }

    #[test]
    fn spaces_by_eights_as_one_by_one() {
        let mut rng = Rng::new(0x5eed_0014);
        for round in 0..20_000 {
            let others: &[u8] = if round % 2 == 0 { b"a\x7f\x80\xff/!" } else { b"a\x00\x0b\x1f!\x21\xa0" };
            let bytes: Vec<u8> = (0..round % 40)
                .map(|_| if rng.index(20) == 0 { *rng.pick(b" \t\n\x0c\r") } else { *rng.pick(others) })
                .collect();
            let expected = bytes.iter().position(|byte| is_space(*byte)).unwrap_or(bytes.len());
            assert_eq!(space_at(&bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn tokens() {
        for (text, expected) in [
            ("", ""),
            (" \t\r\n\x0c ", ""),
            ("nofollow", "nofollow"),
            (" a\tlong-token-of-letters\u{e9}\n\x0cb\x0bc ", "a|long-token-of-letters\u{e9}|b\x0bc"),
            ("a b", "a|b"),
        ] {
            let mut tokens = Vec::new();
            assert!(!any_token(text, |token| {
                tokens.push(token.to_owned());
                false
            }));
            assert_eq!(tokens.join("|"), expected, "{text:?}");
            assert_eq!(any_token(text, |token| tokens.last().is_some_and(|last| last == token)), !expected.is_empty());
        }
    }
}
