//! Noise: text that looks like a link and is none, or is a link that no crawler follows.
//!
//! Decides: an address under `/trap/` appears only where the HTML standard says there is no link: comments, scripts,
//! styles, titles, text areas, values of other attributes, escaped text. A crawler that requests one misreads HTML.
//! Invariants: no HTML parser that follows the standard finds a crawlable link here; markup stays balanced.

use super::draw::Draw;
use super::site::push_number;

/// Appends one piece of noise.
pub(super) fn push(draw: &mut Draw, out: &mut Vec<u8>) {
    let number = draw.below(1_000_000_000);
    let (before, after): (&[u8], &[u8]) = match draw.below(16) {
        0 => (b"<!-- <a href=\"/trap/", b"\">old</a> -->\n"),
        1 => (b"<!--><--><a href=\"mailto:someone@example.test?subject=", b"\">mail</a>\n"),
        2 => (b"<script>document.write('<a href=\"/trap/", b"\">x</a>');</script>\n"),
        3 => (b"<script><!--\n<script>\"<a href='/trap/", b"'>\"</script>\n--></script>\n"),
        4 => (b"<style>a{content:'<a href=\"/trap/", b"\">'}</style>\n"),
        5 => (b"<textarea><a href=\"/trap/", b"\">draft</a></textarea>\n"),
        6 => (b"<span data-href=\"/trap/", b"\" onclick=\"go(this)\">go</span>\n"),
        7 => (b"<span title=\"<a href='/trap/", b"'>x</a>\">tip</span>\n"),
        8 => (b"&lt;a href=\"/trap/", b"\"&gt;quoted&lt;/a&gt;\n"),
        9 => (b"<a href=\"javascript:open('/trap/", b"')\">open</a>\n"),
        10 => (b"<a href=\"tel:+1555", b"\">call</a>\n"),
        11 => (b"<a name=\"/trap/", b"\">anchor</a>\n"),
        12 => (b"<?php <a href=\"/trap/", b"\"> ?>\n"),
        13 => (b"<img src=\"/img/", b".gif\" alt=\"<a href=/trap/1>\">\n"),
        14 => (b"</a href=\"/trap/", b"\">\n"),
        _ => (b"<a data-x='<a href=\"/trap/", b"\">' href=\"javascript:void(0)\">here</a>\n"),
    };
    out.extend_from_slice(before);
    push_number(number, out);
    out.extend_from_slice(after);
}
