//! Text for a terminal, which acts on control characters: they can hide a line, rename the window, or type input.
//!
//! Decides: C0 except line ends and tabs, DEL, and C1 as UTF-8 become U+FFFD, and so do bytes that are not UTF-8,
//! such as C1 as single bytes. The CR of a CRLF is left out: the terminal adds its own. Nothing else changes.
//! Why so: URLs, reasons and pages are text from others. A pipe or a file gets the bytes as they are.
//! Limits: one character of at most four bytes is held back until its last byte, a CR until the byte behind it.

use std::io::{self, Write};

/// Replaces a character that is not shown.
const REPLACEMENT: &str = "\u{fffd}";

/// A stream of bytes on its way to a terminal.
#[derive(Default)]
pub struct Filter {
    /// An incomplete character, or a CR.
    held: Vec<u8>,
}

impl Filter {
    /// Writes the complete part of `bytes` and of what was held back.
    pub fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let (valid, invalid_bytes) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, Some(0)),
                Err(error) => {
                    let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                    (std::str::from_utf8(valid).unwrap_or_default(), error.error_len())
                }
            };
            rest = rest.get(valid.len()..).unwrap_or_default();
            let at_end = rest.is_empty();
            let valid = match valid.strip_suffix('\r') {
                Some(before) if at_end => {
                    self.held.push(b'\r');
                    before
                }
                _ => valid,
            };
            show(valid, out)?;
            match invalid_bytes {
                Some(0) => {}
                Some(count) => {
                    out.write_all(REPLACEMENT.as_bytes())?;
                    rest = rest.get(count..).unwrap_or_default();
                }
                None => {
                    self.held.extend_from_slice(rest);
                    rest = &[];
                }
            }
        }
        Ok(())
    }

    /// Writes what is held back, because no more bytes follow for now.
    pub fn settle(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.held).is_empty() { Ok(()) } else { out.write_all(REPLACEMENT.as_bytes()) }
    }
}

/// `text` without the characters that a terminal would act on.
pub fn shown(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    // Neither can fail: both write to memory.
    let _ = show(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn show(text: &str, out: &mut impl Write) -> io::Result<()> {
    let mut start = 0;
    for (at, character) in text.char_indices().filter(|(_, character)| character.is_control()) {
        let after = at + character.len_utf8();
        let is_line_end = character == '\r' && text.get(after..).is_some_and(|rest| rest.starts_with('\n'));
        if matches!(character, '\n' | '\t') {
            continue;
        }
        out.write_all(text.get(start..at).unwrap_or_default().as_bytes())?;
        if !is_line_end {
            out.write_all(REPLACEMENT.as_bytes())?;
        }
        start = after;
    }
    out.write_all(text.get(start..).unwrap_or_default().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let (mut filter, mut out) = (Filter::default(), Vec::new());
        pieces.into_iter().for_each(|piece| filter.write(piece, &mut out).expect("memory"));
        filter.settle(&mut out).expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn what_a_terminal_would_act_on() {
        for (text, expected) in [
            (&b"a\tb\nc"[..], "a\tb\nc"),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n"),
            (b"good\rbad", "good\u{fffd}bad"),
            (b"\r\r\n\r", "\u{fffd}\n\u{fffd}"),
            (b"\x1b]0;title\x07", "\u{fffd}]0;title\u{fffd}"),
            (b"a\x08\x00\x7f", "a\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{9b}31m \u{80}\u{9f}\u{a0}\u{e0}".as_bytes(), "\u{fffd}31m \u{fffd}\u{fffd}\u{a0}\u{e0}"),
            (b"\x9b31m \xe9", "\u{fffd}31m \u{fffd}"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82\x1b", "\u{fffd}\u{fffd}"),
            ("gr\u{fc}\u{df} \u{20ac} \u{1f980}".as_bytes(), "gr\u{fc}\u{df} \u{20ac} \u{1f980}"),
            (b"", ""),
        ] {
            assert_eq!(filtered([text]), expected, "{text:?}");
            // Wherever it is cut.
            assert_eq!(filtered(text.chunks(1)), expected, "{text:?}");
            for end in 0..text.len() {
                assert_eq!(filtered([&text[..end], &text[end..]]), expected, "{text:?} cut at {end}");
            }
            if let Ok(text) = std::str::from_utf8(text) {
                assert_eq!(shown(text), expected);
            }
        }
    }

    #[test]
    fn no_bytes_get_through() {
        let mut rng = ringcrawl_base::Rng::new(1);
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..rng.index(40)).map(|_| rng.index(256) as u8).collect();
            let cut = rng.index(bytes.len() + 1);
            let out = filtered([&bytes[..cut], &bytes[cut..]]);
            assert!(out.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{bytes:?}: {out:?}");
        }
    }
}
