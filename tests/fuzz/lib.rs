//! Lets each parser of hostile input read random and mutated input, for `FUZZ_SECONDS` seconds, or half a second.
//!
//! Input number N of a run depends on `FUZZ_SEED` and N alone, and both are printed if it fails.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Longest time for one input.
pub const INPUT_MAX: Duration = Duration::from_secs(20);

/// Random numbers (splitmix64), the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Values at which lengths and offsets go wrong.
const NUMBERS: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_fffe, 0xffff_ffff, i64::MAX as u64, u64::MAX];
/// A changed copy of one of the seeds, with some of these words, or bytes without any pattern.
fn mutated(seeds: &[Vec<u8>], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let noise = |random: &mut Random| -> Vec<u8> {
        let length = random.below(300);
        (0..length).map(|_| random.next() as u8).collect()
    };
    if random.below(20) == 0 {
        return noise(random);
    }
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        let end = (at + 1 + random.below(40)).min(input.len());
        match random.below(8) {
            0 => input.truncate(at),
            1 => drop(input.splice(at..at, words[random.below(words.len())].iter().copied())),
            2 => drop(input.drain(at..end)),
            3 => {
                let part = input[at..end].to_vec();
                drop(input.splice(at..at, part));
            }
            4 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let size = [2, 4, 8][random.below(3)];
                let end = (at + size).min(input.len());
                drop(input.splice(at..end, number[..size].iter().copied()));
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    input
}

/// Lets a parser read inputs until the time is over: changed seeds, with words that mean something to the parser.
///
/// # Panics
/// If the parser does, or takes longer than [`INPUT_MAX`].
pub fn fuzz(seeds: &[Vec<u8>], words: &[&[u8]], parse: impl Fn(&[u8])) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let time = number("FUZZ_SECONDS").map_or(Duration::from_millis(500), Duration::from_secs);
    let seed = number("FUZZ_SEED").unwrap_or(0);
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < time {
        let mut random = Random(seed ^ (count << 20));
        let input = mutated(seeds, words, &mut random);
        let start = Instant::now();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| parse(&input))) {
            eprintln!("FUZZ_SEED={seed}, input {count}: {:?}", input.escape_ascii().to_string());
            resume_unwind(panic);
        }
        let taken = start.elapsed();
        assert!(taken < INPUT_MAX, "FUZZ_SEED={seed}, input {count}: {taken:?}");
        count += 1;
    }
    eprintln!("{count} inputs");
}
