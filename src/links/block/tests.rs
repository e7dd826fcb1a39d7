//! Every kernel compared with plain code, and that with the definitions.

use super::super::tests::Noise;
use super::super::tokenizer::ends_name;
use super::super::wanted::LETTERS;
use super::{BLOCK, Kernel, Task, plain_text, with_each};

#[derive(Clone)]
struct Look([u8; BLOCK]);

impl Task for Look {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Vec<u64> {
        let block = kernel.load(&self.0);
        let mut bits: Vec<u64> = (0..=255).map(|byte| kernel.places(block, byte)).collect();
        bits.extend([kernel.name_ends(block), kernel.specials(block)]);
        bits
    }
}

fn bits(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    bytes.iter().enumerate().map(|(place, byte)| u64::from(is(*byte)) << place).sum()
}

fn check(bytes: [u8; BLOCK]) {
    let mut expected: Vec<u64> = (0..=255).map(|byte| bits(&bytes, |one| one == byte)).collect();
    expected.push(bits(&bytes, ends_name));
    expected.push(bits(&bytes, |byte| byte >= 0x80 || matches!(byte, b'&' | b'\r' | 0)));
    for (kernel, found) in with_each(&Look(bytes)) {
        assert_eq!(found, expected, "{kernel}: {bytes:?}");
    }
}

#[test]
fn every_byte_in_every_place() {
    for byte in 0..=255 {
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
    let mut noise = Noise(0x5eed_0011);
    for _ in 0..2_000 {
        let bytes: [u8; 16] = std::array::from_fn(|_| noise.below(256) as u8);
        check(std::array::from_fn(|_| noise.pick(&bytes)));
        check(std::array::from_fn(|_| noise.pick(b"<>\"'=/ \t\n\x0b\x0c\r\0&a-")));
    }
}

#[derive(Clone)]
struct InGroups([[u8; BLOCK]; 3]);

impl Task for InGroups {
    type Output = u64;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> u64 {
        kernel.in_groups(self.0.map(|block| kernel.load(&block)), &LETTERS)
    }
}

#[test]
fn groups_by_letters() {
    let mut noise = Noise(0x5eed_0012);
    for round in 0..3_000 {
        let mut bytes = || if round % 2 == 0 { noise.below(256) as u8 } else { noise.pick(b"aAsStTcCiIeE!/> \t\xe9") };
        let blocks = [0; 3].map(|_| std::array::from_fn(|_| bytes()));
        let found = with_each(&InGroups(blocks));
        let (_, expected) = found[0];
        for (kernel, found) in found {
            // Without look-ups in a vector it may be anywhere.
            assert_eq!(found, if kernel == "sse2" { !0 } else { expected }, "{kernel}: {blocks:?}");
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
        for length in [0, 1, 63, 64, 65, 127, 128, 129, 200] {
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
