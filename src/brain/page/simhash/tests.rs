//! Fingerprints: compared with a slow twin, and tested for their purpose.

use super::*;
use ringcrawl_base::Rng;
use ringcrawl_web::{Item, Model, ModelConfig, Place, Profile};

/// The same, one byte and one bit after the other.
fn slow(bytes: &[u8], is_html: bool) -> Option<u64> {
    let mut shingles: Vec<u64> = Vec::new();
    let mut at = 0;
    let mut keep = |words: &[Vec<u8>]| {
        for three in words.windows(3) {
            shingles.push(shingle([0, 1, 2].map(|word: usize| hash(&three[word]))));
        }
    };
    if bytes.len() <= 32_768 {
        keep(&read(bytes, &mut at, is_html, usize::MAX));
    } else {
        let mut power = 1;
        while power * 32_768 < bytes.len() {
            power *= 2;
        }
        let jump = power * 204;
        loop {
            let from = at + jump;
            let anchor = (from..from + jump).find(|at| bytes.get(*at) == Some(&b'k')).unwrap_or(from + jump);
            let edges: &[u8] = if is_html { b">" } else { b" \n" };
            let Some(landing) = (anchor..bytes.len()).find(|at| edges.contains(&bytes[*at])) else { break };
            at = landing + 1;
            let sample = &bytes[..bytes.len().min(at + 512)];
            let start = at;
            let words = read(sample, &mut at, is_html, 3);
            let text = sample[start..at].split(|byte| *byte == b'<').next().unwrap_or_default();
            match text.iter().position(|byte| is_html && b"{}=".contains(byte)) {
                // Words before code are in no shingle, because there are fewer than three.
                Some(code) => at = start + code,
                None => keep(&words),
            }
        }
    }
    let sums = (0..64).map(|bit| shingles.iter().filter(|hash| **hash >> bit & 1 == 1).count());
    let bits = sums.enumerate().map(|(bit, sum)| u64::from(2 * sum > shingles.len()) << bit);
    (shingles.len() >= 16).then(|| bits.sum())
}

fn hash(word: &[u8]) -> u64 {
    word.iter().fold(0u64, |hash, byte| hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// At most `words_max` words of `bytes` starting at `at`, which moves on.
fn read(bytes: &[u8], at: &mut usize, is_html: bool, words_max: usize) -> Vec<Vec<u8>> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let mut words = Vec::new();
    while words.len() < words_max && *at < bytes.len() {
        if bytes[*at] == b'<' && is_html {
            *at = behind_tag(bytes, *at);
        } else if !is_letter(bytes[*at]) {
            *at += 1;
        } else {
            let start = *at;
            let mut word = vec![bytes[*at].to_ascii_lowercase()];
            *at += 1;
            while *at < bytes.len() && is_letter(bytes[*at]) && !(0xe0..0xf0).contains(&bytes[*at]) {
                word.push(bytes[*at].to_ascii_lowercase());
                *at += 1;
            }
            let is_reference = is_html && bytes[..start].ends_with(b"&") && bytes[*at..].starts_with(b";");
            if !word.iter().any(u8::is_ascii_digit) && !is_reference {
                words.push(word);
            }
        }
    }
    words
}

fn behind_tag(bytes: &[u8], open: usize) -> usize {
    let ascii = bytes[open..].iter().map(|byte| if byte.is_ascii() { byte.to_ascii_lowercase() } else { 0 });
    let rest = String::from_utf8(ascii.collect()).expect("ASCII");
    let behind = |end: Option<usize>, length: usize| end.map_or(bytes.len(), |end| open + end + length);
    if rest.starts_with("<!--") {
        return behind(rest.get(2..).and_then(|rest| rest.find("-->")), 5);
    }
    let is_tag = rest[1..].starts_with(|first: char| first.is_ascii_alphabetic() || "/!?".contains(first));
    if !is_tag {
        return open + 1;
    }
    let name: String = rest[1..].chars().take_while(|one| one.is_ascii_alphanumeric() || *one == '-').collect();
    let Some(end) = rest.find('>') else { return bytes.len() };
    if name != "script" && name != "style" {
        return open + end + 1;
    }
    let goes_on = |after: &str| after.starts_with(|one: char| one.is_ascii_alphanumeric() || one == '-');
    let close = format!("</{name}");
    let found = rest[end..].match_indices(&close).find(|(at, _)| !goes_on(&rest[end + at + close.len()..]));
    behind(found.map(|(at, _)| end + at), 0)
}

/// HTML made of relevant pieces, well and badly put together.
fn noise(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "<p>",
        "</p>",
        "<p class=\"k\">",
        "<script>",
        "</script>",
        "</SCRIPT >",
        "<style",
        "</style>",
        "<scripts>",
        "</scriptx",
        "<!--",
        "-->",
        "<!-->",
        "<!",
        "<?",
        "</",
        "<",
        ">",
        "--",
        " < ",
        " ",
        "\n",
        ", ",
        ".",
        "&amp;",
        "{",
        "}",
        "=",
        "k",
        "K",
        "word",
        "Word",
        "words",
        "a",
        "of",
        "b2",
        "2026",
        "caf\u{e9}",
        "\u{4e2d}\u{6587}",
        "\u{1f600}",
        "<br>",
        "<div id=x>",
    ];
    let mut html = Vec::new();
    while html.len() < bytes {
        match rng.below(40) {
            0 => html.extend(rng.bytes(5)),
            1..=20 => {
                let letters = 1 + rng.index(9);
                html.extend((0..letters).map(|_| b'a' + rng.below(26) as u8));
                html.push(b' ');
            }
            _ => html.extend_from_slice(rng.pick(PIECES).as_bytes()),
        }
    }
    html
}

#[test]
fn twins_agree() {
    let mut rng = Rng::new(1);
    let mut found = [0; 2];
    for round in 0..90 {
        let bytes = match round % 3 {
            0 => rng.index(600),
            1 => 32_000 + rng.index(1_600),
            _ => 33_000 + rng.index(200_000),
        };
        let html = noise(&mut rng, bytes);
        let (own_html, own_text) = (of_html(&html), of_text(&html));
        assert_eq!(own_html, slow(&html, true), "round {round}");
        assert_eq!(own_text, slow(&html, false), "round {round}");
        found[0] += usize::from(own_html.is_some());
        found[1] += usize::from(own_text.is_some());
    }
    assert!(found.iter().all(|found| *found > 45), "{found:?}");
}

#[test]
fn sums_are_sums() {
    let mut rng = Rng::new(2);
    for count in (0..70).chain([1_000, Votes::COUNT_MAX]) {
        let (mut votes, mut sums) = (Votes::default(), [0; 64]);
        for _ in 0..count {
            // Some bits are rarely set, some often.
            let bits = rng.next() & (rng.next() | 0xff) | rng.next() & 0xff00;
            votes.add(bits);
            sums.iter_mut().enumerate().for_each(|(bit, sum)| *sum += bits >> bit & 1);
        }
        let majority = sums.iter().enumerate().map(|(bit, sum)| u64::from(2 * sum > count as u64) << bit).sum::<u64>();
        assert_eq!((votes.count(), votes.majority()), (count, majority), "{count}");
    }
}

/// Bytes that are not a page: no panic, and the same result as the twin's.
#[test]
fn any_bytes_will_do() {
    let mut rng = Rng::new(3);
    for length in (0..200).chain([32_767, 32_768, 32_769, 80_000]) {
        let bytes = rng.bytes(length);
        assert_eq!(of_html(&bytes), slow(&bytes, true), "{length}");
        let few: Vec<u8> = bytes.iter().map(|byte| b"<>!-/k a"[usize::from(byte & 7)]).collect();
        assert_eq!(of_html(&few), slow(&few, true), "{length}");
        of_text(&few);
    }
}

#[test]
fn markup_numbers_and_case_make_no_difference() {
    let words = text(&mut Rng::new(4), 100);
    let plain = of_text(words.as_bytes()).expect("enough words");
    let html = format!(
        "<!DOCTYPE html><title>{words}</title><script>var a = '<b>no</b>';</script><!-- no <b> more --><STYLE>p{{}}</style> 2026-11-26 #12ab"
    );
    assert_eq!(of_html(html.as_bytes()), Some(plain));
    assert_eq!(of_html(words.to_uppercase().replace(' ', "</p>\n<p title=word>").as_bytes()), Some(plain));
    assert_eq!(of_html(text(&mut Rng::new(4), 17).as_bytes()), None, "15 shingles are too few");
    assert!(of_html(text(&mut Rng::new(4), 18).as_bytes()).is_some());
    // Text without spaces between words has characters instead.
    let chinese: String = (0..40).filter_map(|number| char::from_u32(0x4e00 + number)).collect();
    assert!(of_html(chinese.as_bytes()).is_some());
}

/// Fingerprints are compared with those from years before: another rule needs another field.
#[test]
fn the_rule_is_what_it_was() {
    let letter = |number: u32| char::from(b'a' + (number.wrapping_mul(2_654_435_761) >> 28) as u8);
    let page = |words: u32| -> Vec<u8> {
        (0..words).flat_map(|n| format!("<p>{}{}</p>\n", letter(n), letter(n / 3 + 99)).into_bytes()).collect()
    };
    assert_eq!(of_html(&page(100)), Some(0x81f0_00bc_f58a_5080));
    assert_eq!(of_html(&page(9_000)), Some(0xd2e9_08fa_afbe_2675));
    assert_eq!(of_text(&page(9_000)), Some(0xcc3a_67da_615e_4d8e));
}

/// Words of no language.
fn text(rng: &mut Rng, words: usize) -> String {
    let word = |rng: &mut Rng| -> String {
        let letters = 2 + rng.index(8);
        (0..letters).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
    };
    (0..words).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

fn distance(one: Option<u64>, other: Option<u64>) -> u32 {
    (one.expect("enough words") ^ other.expect("enough words")).count_ones()
}

/// A word of 500 is in three shingles of 498.
#[test]
fn one_word_changes_few_bits() {
    let mut rng = Rng::new(5);
    let mut all = 0;
    for _ in 0..200 {
        let page = text(&mut rng, 500);
        let mut words: Vec<&str> = page.split(' ').collect();
        let place = rng.index(words.len());
        words[place] = "another";
        let bits = distance(of_text(page.as_bytes()), of_text(words.join(" ").as_bytes()));
        assert!(bits <= 8, "{bits}");
        all += bits;
        let other = distance(of_text(page.as_bytes()), of_text(text(&mut rng, 500).as_bytes()));
        assert!((14..=50).contains(&other), "{other}");
    }
    assert!(all / 200 <= 3, "{all}");
}

/// Pages of the synthetic web: long ones, read in samples.
#[test]
fn long_pages_keep_their_fingerprint_when_little_changes() {
    let config = ModelConfig { sites: 3, pages: 400, profile: Profile::Web, https_share: 0.0, ..Default::default() };
    let model = Model::new(config).expect("a web");
    let page = |number| {
        let url = model.url_of(&Place::canonical(0, Item::Page(number))).expect("a page");
        let mut html = Vec::new();
        assert_eq!(model.answer_url(&url, &mut html).status, 200);
        html
    };
    let mut rng = Rng::new(6);
    let pages: Vec<Vec<u8>> = (0..90).map(page).filter(|html| html.len() > 2 * WHOLE_BYTES).collect();
    assert!(pages.len() > 30, "{}", pages.len());
    let (mut token_bits, mut advert_bits) = (0, 0);
    for html in &pages {
        let own = of_html(html);
        assert_eq!(own, of_html(html));
        // Another token of the same length; and a new advert before some tag.
        let mut token = html.clone();
        let places: Vec<usize> = memchr::memmem::find_iter(html, b"<li>").collect();
        let place = *rng.pick(&places);
        token.splice(place..place + 4, b"<b >".iter().copied());
        token_bits += distance(own, of_html(&token));
        let advert = format!("<div class=advert><p>{}</p></div>", text(&mut rng, 30));
        let mut longer = html.clone();
        longer.splice(place..place, advert.into_bytes());
        if jump(longer.len()) == jump(html.len()) {
            advert_bits += distance(own, of_html(&longer));
        }
    }
    let count = pages.len() as u32;
    assert!(token_bits <= count, "{token_bits} in {count} pages");
    assert!(advert_bits <= 8 * count, "{advert_bits} in {count} pages");
    let pairs = (0..pages.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let near =
        pairs.filter(|(one, other)| distance(of_html(&pages[*one]), of_html(&pages[*other])) <= 8).count() as u32;
    assert!(near <= count / 20, "{near} of the pages of one site are near each other");
}
