//! Four sets of cells in one AVX2 register.

use grundy_games::konane::CellSet;
use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// Four sets of cells. Only for code that runs where [`Quad::is_supported`]: everything else about it is inlined into that
/// code, which enables the features by `#[target_feature]`.
#[derive(Clone, Copy)]
pub(super) struct Quad(__m256i);

impl Quad {
    /// Whether this processor can.
    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
}

/// The reverse of each number of four bits, and the same in the high half of the byte.
const REVERSED: [u8; 16] = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15];

// SAFETY, for all of the intrinsics below: they need AVX2, and a `Quad` exists only where it was detected; see the type.
// None of them reads or writes memory except where it says so.

impl CellSet for Quad {
    const LANES: usize = 4;

    #[inline(always)]
    fn splat(set: u64) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_set1_epi64x(set as i64) })
    }

    #[inline(always)]
    fn load(sets: &[u64]) -> Self {
        let mut lanes = [0u64; 4];
        for (lane, set) in lanes.iter_mut().zip(sets) {
            *lane = *set;
        }
        // SAFETY: see above; reads the 32 bytes of the array, at any alignment.
        Self(unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, sets: &mut [u64]) {
        let sets = &mut sets[..4];
        // SAFETY: see above; writes the 32 bytes of the slice, at any alignment.
        unsafe { _mm256_storeu_si256(sets.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        // SAFETY: see above.
        unsafe {
            let difference = _mm256_xor_si256(self.0, other.0);
            _mm256_testz_si256(difference, difference) == 1
        }
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        // SAFETY: see above; reads the arrays, at any alignment.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(REVERSED.as_ptr().cast()));
            let bytes = _mm256_set_epi8(
                8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, //
                8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7,
            );
            let nibble = _mm256_set1_epi8(15);
            let swapped = _mm256_shuffle_epi8(self.0, bytes);
            let low = _mm256_shuffle_epi8(table, _mm256_and_si256(swapped, nibble));
            let high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(swapped), nibble));
            Self(_mm256_or_si256(_mm256_slli_epi16::<4>(low), high))
        }
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            // The comparison takes numbers with a sign.
            let sign = _mm256_set1_epi64x(i64::MIN);
            Self(_mm256_cmpgt_epi64(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign)))
        }
    }

    #[inline(always)]
    fn equal(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_cmpeq_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn or_else(self, mask: Self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_blendv_epi8(other.0, self.0, mask.0) })
    }
}

impl Not for Quad {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_xor_si256(self.0, _mm256_set1_epi64x(-1)) })
    }
}

impl BitAnd for Quad {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }
}

impl BitOr for Quad {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_or_si256(self.0, other.0) })
    }
}

impl Shl<u32> for Quad {
    type Output = Self;

    #[inline(always)]
    fn shl(self, by: u32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_sllv_epi64(self.0, _mm256_set1_epi64x(by.into())) })
    }
}

impl Shr<u32> for Quad {
    type Output = Self;

    #[inline(always)]
    fn shr(self, by: u32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_srlv_epi64(self.0, _mm256_set1_epi64x(by.into())) })
    }
}
