//! Elementwise ops on integers. They never trap: sums wrap, a division by zero gives 0, and a shift by the width or more shifts out every
//! bit.

/// An integer element. A shift amount is taken as unsigned, so that a negative amount is a large one.
pub(super) trait Int: Copy + Ord + 'static {
    fn quotient(self, by: Self) -> Self;
    fn remainder(self, by: Self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
    fn multiply_high(self, by: Self) -> Self;
    fn absolute(self) -> Self;
    fn ones(self) -> Self;
    fn zeros_ahead(self) -> Self;
    fn reversed(self) -> Self;
}

macro_rules! int {
    ($ty:ident, $unsigned:ident, $twice:ident, $absolute:expr) => {
        impl Int for $ty {
            #[inline(always)]
            fn quotient(self, by: $ty) -> $ty {
                if by == 0 { 0 } else { self.wrapping_div(by) }
            }
            #[inline(always)]
            fn remainder(self, by: $ty) -> $ty {
                if by == 0 { self } else { self.wrapping_rem(by) }
            }
            #[inline(always)]
            fn shift_left(self, by: $ty) -> $ty {
                let shifted = self.wrapping_shl(by as u32);
                if by as $unsigned >= $unsigned::BITS as $unsigned { 0 } else { shifted }
            }
            #[inline(always)]
            fn shift_right(self, by: $ty) -> $ty {
                let shifted = self.wrapping_shr(by as u32);
                // Two shifts keep each amount below the width; they give the sign bits, or 0.
                let emptied = self.wrapping_shr($ty::BITS - 1).wrapping_shr(1);
                if by as $unsigned >= $unsigned::BITS as $unsigned { emptied } else { shifted }
            }
            #[inline(always)]
            fn multiply_high(self, by: $ty) -> $ty {
                ((self as $twice * by as $twice) >> $ty::BITS) as $ty
            }
            #[inline(always)]
            fn absolute(self) -> $ty {
                $absolute(self)
            }
            #[inline(always)]
            fn ones(self) -> $ty {
                self.count_ones() as $ty
            }
            #[inline(always)]
            fn zeros_ahead(self) -> $ty {
                self.leading_zeros() as $ty
            }
            #[inline(always)]
            fn reversed(self) -> $ty {
                self.reverse_bits()
            }
        }
    };
}

int!(i8, u8, i16, i8::wrapping_abs);
int!(i16, u16, i32, i16::wrapping_abs);
int!(i32, u32, i64, i32::wrapping_abs);
int!(i64, u64, i128, i64::wrapping_abs);
int!(u8, u8, u16, |x| x);
int!(u16, u16, u32, |x| x);
int!(u32, u32, u64, |x| x);
int!(u64, u64, u128, |x| x);
