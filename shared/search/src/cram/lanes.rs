//! Sets of nimbers below 16, 32 of them side by side: the inner loops of filling a pair table.
//!
//! A set is two bits planes: bit `n` of the low byte for nimber `n`, bit `n - 8` of the high byte for nimber `n` from 8 to 15. Larger
//! nimbers are left out, so that a [`mex`](Sets::mex) below 16 is right whatever the options are, and one of 16 says no more
//! than *at least*.
//!
//! With AVX2 a set of 32 lanes is two registers and adding to it four instructions: a shuffle looks up `1 << n` for 32 nimbers at
//! once. That fills the table of 3 rows and 7 + 6 columns in a seventh of the time that shifts lane by lane take.

/// How many sets are held side by side.
pub(super) const LANES: usize = 32;

/// A byte for each lane.
pub(super) type Lanes = [u8; LANES];

/// What [`Sets::mex`] gives for a set that has all nimbers below 16.
pub(super) const MEX_MAX: u8 = 16;

/// 32 sets of nimbers below 16.
#[derive(Clone, Copy)]
pub(super) struct Sets {
    /// Nimbers 0 to 7.
    pub(super) low: Lanes,
    /// Nimbers 8 to 15.
    pub(super) high: Lanes,
}

/// Whether this processor has the instructions; asked once for a table.
#[derive(Clone, Copy)]
pub(super) struct Simd(bool);

impl Simd {
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        let found = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let found = false;
        Self(found)
    }

    /// Without them, to compare with.
    #[cfg(test)]
    fn none() -> Self {
        Self(false)
    }

    /// Adds the nimber `row[i] ^ offset` to the `i`-th set of two planes of equal length, for a whole row.
    pub(super) fn add_row(self, low: &mut [u8], high: &mut [u8], row: &[u8], offset: u8) {
        #[cfg(target_arch = "x86_64")]
        if self.0 {
            // SAFETY: `detect` found AVX2, the only feature that the function enables.
            return unsafe { avx2::add_row(low, high, row, offset) };
        }
        for ((low, high), nimber) in low.iter_mut().zip(high).zip(row) {
            add(low, high, nimber ^ offset);
        }
    }

    /// Completes 32 sets by the nimbers `lanes ^ offset` of each option, and gives their mex.
    pub(super) fn mex<'a>(self, sets: Sets, options: impl Iterator<Item = (&'a Lanes, u8)>) -> Lanes {
        #[cfg(target_arch = "x86_64")]
        if self.0 {
            // SAFETY: `detect` found AVX2, the only feature that the function enables.
            return unsafe { avx2::mex(sets, options) };
        }
        let Sets { mut low, mut high } = sets;
        for (nimbers, offset) in options {
            for lane in 0..LANES {
                add(&mut low[lane], &mut high[lane], nimbers[lane] ^ offset);
            }
        }
        std::array::from_fn(|lane| (u16::from(high[lane]) << 8 | u16::from(low[lane])).trailing_ones() as u8)
    }
}

/// Adds a nimber to a set.
pub(super) fn add(low: &mut u8, high: &mut u8, nimber: u8) {
    let bit = 1u32.checked_shl(u32::from(nimber)).unwrap_or(0);
    *low |= bit as u8;
    *high |= (bit >> 8) as u8;
}

/// Transposes a block: `to[column * to_stride + row] = from[row * from_stride + column]` for 8 rows and 8 columns.
pub(super) fn transpose8(from: &[u8], from_stride: usize, to: &mut [u8], to_stride: usize) {
    let mut rows: [u64; 8] = std::array::from_fn(|row| {
        let start = row * from_stride;
        let bytes: [u8; 8] = from[start..start + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    });
    // Swaps the halves of squares of 4, 2 and 1 bytes across their diagonals.
    for (half, mask) in
        [(4, 0x0000_0000_FFFF_FFFF), (2, 0x0000_FFFF_0000_FFFF), (1, 0x00FF_00FF_00FF_00FFu64)]
    {
        for row in 0..8 {
            if row & half == 0 {
                let (a, b) = (rows[row], rows[row + half]);
                let swapped = (a >> (8 * half) ^ b) & mask;
                rows[row] = a ^ swapped << (8 * half);
                rows[row + half] = b ^ swapped;
            }
        }
    }
    for (column, bytes) in rows.iter().enumerate() {
        let start = column * to_stride;
        to[start..start + 8].copy_from_slice(&bytes.to_le_bytes());
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{LANES, Lanes, MEX_MAX, Sets, add};
    use std::arch::x86_64::*;

    /// `1 << n` for n below 8, and for n from 8 to 15; the same in both halves, as the shuffle reads them.
    const LOW: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];
    const HIGH: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128];
    /// The place of the bit in a nibble that has one.
    const PLACE: [u8; 16] = [0, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    const PLACE_ABOVE: [u8; 16] = [0, 4, 5, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];

    #[target_feature(enable = "avx2")]
    fn load(bytes: &Lanes) -> __m256i {
        // SAFETY: reads the 32 bytes of the array, at any alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn store(bytes: &mut Lanes, value: __m256i) {
        // SAFETY: writes the 32 bytes of the array, at any alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
    }

    #[target_feature(enable = "avx2")]
    fn twice(table: &[u8; 16]) -> __m256i {
        // SAFETY: reads the 16 bytes of the array, at any alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
    }

    /// `1 << n` in two planes; a nimber of 16 or more sets bit 7 of its index by the saturating sum, and so gives nothing.
    #[target_feature(enable = "avx2")]
    fn bits(nimbers: __m256i, offset: __m256i) -> (__m256i, __m256i) {
        let index = _mm256_adds_epu8(_mm256_xor_si256(nimbers, offset), _mm256_set1_epi8(0x70));
        (_mm256_shuffle_epi8(twice(&LOW), index), _mm256_shuffle_epi8(twice(&HIGH), index))
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_row(low: &mut [u8], high: &mut [u8], row: &[u8], offset: u8) {
        let offsets = _mm256_set1_epi8(offset as i8);
        let (low, low_rest) = low.as_chunks_mut::<LANES>();
        let (high, high_rest) = high.as_chunks_mut::<LANES>();
        let (row, row_rest) = row.as_chunks::<LANES>();
        for ((low, high), nimbers) in low.iter_mut().zip(high).zip(row) {
            let (low_bits, high_bits) = bits(load(nimbers), offsets);
            let (low_sum, high_sum) =
                (_mm256_or_si256(load(low), low_bits), _mm256_or_si256(load(high), high_bits));
            store(low, low_sum);
            store(high, high_sum);
        }
        for ((low, high), nimber) in low_rest.iter_mut().zip(high_rest).zip(row_rest) {
            add(low, high, nimber ^ offset);
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn mex<'a>(sets: Sets, options: impl Iterator<Item = (&'a Lanes, u8)>) -> Lanes {
        let (mut low, mut high) = (load(&sets.low), load(&sets.high));
        for (nimbers, offset) in options {
            let (low_bits, high_bits) = bits(load(nimbers), _mm256_set1_epi8(offset as i8));
            low = _mm256_or_si256(low, low_bits);
            high = _mm256_or_si256(high, high_bits);
        }
        let all = _mm256_set1_epi8(-1);
        let (low_full, high_full) = (_mm256_cmpeq_epi8(low, all), _mm256_cmpeq_epi8(high, all));
        let above = _mm256_blendv_epi8(
            _mm256_add_epi8(first_zero(high), _mm256_set1_epi8(8)),
            _mm256_set1_epi8(MEX_MAX as i8),
            high_full,
        );
        let mut mex = [0; LANES];
        store(&mut mex, _mm256_blendv_epi8(first_zero(low), above, low_full));
        mex
    }

    /// The place of the lowest zero bit of each byte that has one.
    #[target_feature(enable = "avx2")]
    fn first_zero(bytes: __m256i) -> __m256i {
        let bit = _mm256_andnot_si256(bytes, _mm256_add_epi8(bytes, _mm256_set1_epi8(1)));
        let nibble = _mm256_set1_epi8(15);
        let below = _mm256_and_si256(bit, nibble);
        let above = _mm256_and_si256(_mm256_srli_epi16::<4>(bit), nibble);
        _mm256_or_si256(
            _mm256_shuffle_epi8(twice(&PLACE), below),
            _mm256_shuffle_epi8(twice(&PLACE_ABOVE), above),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All nimbers up to 40 and all offsets up to 31, in every lane.
    #[test]
    fn lanes_do_what_shifts_do() {
        let nimbers: Vec<u8> = (0..LANES * 41).map(|i| (i * 7 % 41) as u8).collect();
        for simd in [Simd::none(), Simd::detect()] {
            for offset in 0..32 {
                let (mut low, mut high) = (vec![0; nimbers.len()], vec![0; nimbers.len()]);
                simd.add_row(&mut low, &mut high, &nimbers, offset);
                simd.add_row(&mut low[3..], &mut high[3..], &nimbers[..nimbers.len() - 3], 1);
                for (i, nimber) in nimbers.iter().enumerate() {
                    let mut expected = 1u64 << (nimber ^ offset);
                    if i >= 3 {
                        expected |= 1 << (nimbers[i - 3] ^ 1);
                    }
                    assert_eq!((low[i], high[i]), (expected as u8, (expected >> 8) as u8), "{i} {offset}");
                }
            }
        }
    }

    #[test]
    fn the_mex_is_the_least_that_is_missing() {
        for set in 0..=u16::MAX {
            let lane = usize::from(set) % LANES;
            let mut sets = Sets { low: [3; LANES], high: [0; LANES] };
            (sets.low[lane], sets.high[lane]) = (set as u8, (set >> 8) as u8);
            for simd in [Simd::none(), Simd::detect()] {
                let five = [4; LANES];
                let mex = simd.mex(sets, [(&five, 1)].into_iter());
                let expected =
                    std::array::from_fn(|i| if i == lane { (set | 1 << 5).trailing_ones() as u8 } else { 2 });
                assert_eq!(mex, expected, "{set:b}");
            }
        }
    }

    #[test]
    fn blocks_are_transposed() {
        let from: Vec<u8> = (0..200).collect();
        let mut to = vec![0; 100];
        transpose8(&from[3..], 20, &mut to, 11);
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            assert_eq!(to[column * 11 + row], from[3 + row * 20 + column]);
        }
    }
}
