//! Numbers in the payload of a block: seven bits a byte, the lowest first (LEB128); signed ones are folded, so that
//! small steps in either direction are short.

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front; `None` if there is none.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends the difference between `last` and `number`, which becomes the new `last`.
pub fn put_step(out: &mut Vec<u8>, last: &mut u64, number: u64) {
    let step = number.wrapping_sub(std::mem::replace(last, number)) as i64;
    put(out, ((step << 1) ^ (step >> 63)) as u64);
}

/// Takes a step from the front, and adds it to `last`.
pub fn take_step(bytes: &mut &[u8], last: &mut u64) -> Option<u64> {
    let folded = take(bytes)?;
    *last = last.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg());
    Some(*last)
}

/// Takes `count` bytes from the front.
pub fn take_bytes<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX, 5, u64::MAX - 1, 0, 1 << 63];
        let (mut bytes, mut last) = (Vec::new(), 7);
        for number in numbers {
            put(&mut bytes, number);
            put_step(&mut bytes, &mut last, number);
        }
        let (mut rest, mut last) = (bytes.as_slice(), 7);
        for number in numbers {
            assert_eq!((take(&mut rest), take_step(&mut rest, &mut last)), (Some(number), Some(number)));
        }
        assert!(rest.is_empty() && take(&mut rest).is_none());
        assert_eq!(take(&mut &[0xff; 20][..]), None, "no number is that long");
        let mut near = Vec::new();
        put_step(&mut near, &mut 1_000, 990);
        assert_eq!(near.len(), 1, "a small step back is short, too");
    }
}
