//! Lines as a service logs them: templates with digits that differ from line to line, from a seed.

/// Each `#` becomes a digit of its own, each `@` a hexadecimal one.
const TEMPLATES: [&str; 6] = [
    "2026-11-03T08:##:##.###Z INFO  http worker-## GET /api/v1/items/###### status=200 bytes=##### took=##.### ms trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "2026-11-03T08:##:##.###Z INFO  http worker-## POST /api/v1/orders/###### status=201 bytes=#### took=###.## ms trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "2026-11-03T08:##:##.###Z DEBUG cache shard=## hit=#### miss=### evicted=## resident=######## bytes trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "2026-11-03T08:##:##.###Z INFO  db pool=main connection=### duration: #.### ms statement: SELECT * FROM items WHERE id = ###### trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "2026-11-03T08:##:##.###Z WARN  queue orders depth=##### oldest=##.# s consumer=worker-## lag=###### trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "2026-11-03T08:##:##.###Z INFO  sensor station-### temperature=##.## humidity=##.# pressure=10##.# battery=3.## trace=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n",
];

/// Sixteen digits for four bits.
const DIGITS: [u8; 16] = *b"0123456789012345";
const HEX_DIGITS: [u8; 16] = *b"0123456789abcdef";

/// A line of random numbers, one behind the other.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits (splitmix64).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Evenly from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Writes one line with its end into `into`, as much as fits; how many bytes.
pub fn line(random: &mut Random, into: &mut [u8]) -> usize {
    let template = TEMPLATES[(random.next() >> 32) as usize % TEMPLATES.len()].as_bytes();
    let len = template.len().min(into.len());
    let (mut bits, mut left) = (0, 0);
    for (to, from) in into[..len].iter_mut().zip(template) {
        let digits = match from {
            b'#' => &DIGITS,
            b'@' => &HEX_DIGITS,
            _ => {
                *to = *from;
                continue;
            }
        };
        if left == 0 {
            (bits, left) = (random.next(), 16);
        }
        *to = digits[(bits & 15) as usize];
        bits >>= 4;
        left -= 1;
    }
    len
}

/// Fills `into` with the lines of the record `number`.
pub fn fill(number: u64, into: &mut [u8]) {
    let mut random = Random::new(number);
    let mut filled = 0;
    while filled < into.len() {
        filled += line(&mut random, &mut into[filled..]);
    }
}
