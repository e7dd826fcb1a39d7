//! Compares every kernel with plain code, and that with the definitions.

use super::super::tokenizer::ends_name;
use super::super::wanted::{Wanted, bits as names};
use super::{BLOCK, Kernel, Task, WINDOW, plain_text, with_each};
use ringcrawl_base::Rng;

/// Bytes that are searched for. An interpreter, which has kernels that this processor lacks, has time for only a few.
const ASKED: std::ops::RangeInclusive<u8> = if cfg!(miri) { b'<'..=b'>' } else { 0..=255 };
/// One byte in this many is tried at every position.
const BYTES_STEP: usize = if cfg!(miri) { 7 } else { 1 };

/// The number of rounds, reduced for an interpreter.
const fn rounds(rounds: usize) -> usize {
    if cfg!(miri) { rounds / 100 } else { rounds }
}

#[derive(Clone)]
struct Look([u8; BLOCK]);

impl Task for Look {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Vec<u64> {
        let block = kernel.load(&self.0);
        let mut bits: Vec<u64> = ASKED.map(|byte| kernel.places(block, byte)).collect();
        bits.extend([kernel.name_ends(block), kernel.specials(block)]);
        bits
    }
}

fn bits(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    bytes.iter().enumerate().map(|(place, byte)| u64::from(is(*byte)) << place).sum()
}

fn check(bytes: [u8; BLOCK]) {
    let mut expected: Vec<u64> = ASKED.map(|byte| bits(&bytes, |one| one == byte)).collect();
    expected.push(bits(&bytes, ends_name));
    expected.push(bits(&bytes, |byte| byte >= 0x80 || matches!(byte, b'&' | b'\r' | 0)));
    for (kernel, found) in with_each(&Look(bytes)) {
        assert_eq!(found, expected, "{kernel}: {bytes:?}");
    }
}

#[test]
fn every_byte_in_every_place() {
    for byte in (0..=255).step_by(BYTES_STEP) {
        check([byte; BLOCK]);
        let others = [b'a', b' ', 0xff];
        for (other, place) in others.iter().zip([0, usize::from(byte) % BLOCK, BLOCK - 1]) {
            let mut block = [*other; BLOCK];
            block[place] = byte;
            check(block);
        }
    }
}

#[test]
fn noise() {
    let mut rng = Rng::new(0x5eed_0011);
    for _ in 0..rounds(2_000) {
        let bytes: [u8; 16] = std::array::from_fn(|_| rng.next() as u8);
        check(std::array::from_fn(|_| *rng.pick(&bytes)));
        check(std::array::from_fn(|_| *rng.pick(b"<>\"'=/ \t\n\x0b\x0c\r\0&a-")));
    }
}

#[derive(Clone)]
struct Begins([u8; WINDOW], Wanted);

impl Task for Begins {
    type Output = (bool, u64);

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> (bool, u64) {
        let marks = kernel.begins(&self.0, self.1.letters());
        (kernel.any(marks), kernel.bits(marks))
    }
}

#[test]
fn begins_by_letters() {
    let mut rng = Rng::new(0x5eed_0012);
    let sets = [names(&[b"a", b"link", b"script", b"title"]), names(&[b"img", b"svg", b"frame"]), u32::MAX];
    let mut seen = 0;
    for round in 0..rounds(9_000) {
        let all = round % 2 == 0;
        let window = [0; WINDOW].map(|_| match rng.index(3) {
            0 => b'<',
            _ if all => rng.next() as u8,
            _ => *rng.pick(b"aAsStTcCiIeErRlLgG!/>-[ \t\xe9"),
        });
        let wanted = Wanted::new(sets[round % sets.len()]);
        let expected: u64 = (0..BLOCK)
            .map(|at| {
                u64::from(window[at] == b'<' && wanted.letters().have([1, 2, 3, 4].map(|n| window[at + n]))) << at
            })
            .sum();
        seen += expected.count_ones();
        for (kernel, found) in with_each(&Begins(window, wanted)) {
            // Without vector lookups, any `<` may be marked.
            let expected = if kernel == "sse2" { bits(&window[..BLOCK], |byte| byte == b'<') } else { expected };
            assert_eq!(found, (expected != 0, expected), "{kernel}: {window:?}");
        }
    }
    assert!(seen as usize > rounds(1_000), "{seen} marks");
}

#[derive(Clone)]
struct Marks([[u8; BLOCK]; 2]);

impl Task for Marks {
    type Output = [(bool, u64); 2];

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> [(bool, u64); 2] {
        let [one, other] = self.0.map(|block| kernel.equal(kernel.load(&block), b'x'));
        [kernel.both(one, other), kernel.either(one, other)].map(|marks| (kernel.any(marks), kernel.bits(marks)))
    }
}

#[test]
fn marks_of_two() {
    let mut rng = Rng::new(0x5eed_0013);
    for round in 0..rounds(1_000) {
        let blocks = [0; 2].map(|_| [0; BLOCK].map(|_| if rng.index(1 + round % 100) == 0 { b'x' } else { b'-' }));
        let [one, other] = blocks.map(|block| bits(&block, |byte| byte == b'x'));
        let expected = [one & other, one | other].map(|bits| (bits != 0, bits));
        for (kernel, found) in with_each(&Marks(blocks)) {
            assert_eq!(found, expected, "{kernel}: {blocks:?}");
        }
    }
}

#[derive(Clone)]
struct Text(Vec<u8>, usize, usize);

impl Task for Text {
    type Output = bool;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> bool {
        plain_text(kernel, &self.0, self.1, self.2).is_some_and(|text| text.as_bytes() == &self.0[self.1..self.2])
    }
}

#[test]
fn plain_text_has_nothing_special() {
    let page = "x".repeat(400).into_bytes();
    for special in [b'&', b'\r', 0, 0x80, 0xff] {
        for length in [0, 1, 63, 64, 65, 127, 128, 129, 200].into_iter().step_by(if cfg!(miri) { 4 } else { 1 }) {
            for place in [99, 100, 100 + length / 2, 99 + length, 100 + length] {
                let mut page = page.clone();
                page[place] = special;
                let plain = !(100..100 + length).contains(&place);
                for (kernel, found) in with_each(&Text(page, 100, 100 + length)) {
                    assert_eq!(found, plain, "{kernel}: {special} at {place}, length {length}");
                }
            }
        }
    }
}

/// An interpreter that is configured with AVX2 must have it, or it tests nothing.
#[cfg(all(miri, target_arch = "x86_64"))]
#[test]
fn an_interpreter_has_every_kernel() {
    let kernels: Vec<&str> = with_each(&Marks([[0; BLOCK]; 2])).into_iter().map(|(kernel, _)| kernel).collect();
    assert_eq!(kernels, ["plain", "sse2", "avx2"]);
}
