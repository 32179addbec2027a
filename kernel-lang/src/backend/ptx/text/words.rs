//! 32-bit words of elements, the operands of shuffles and selects; and bits of the thread index.

use crate::dtype::Dtype;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

impl Emitter<'_> {
    /// Packs one, two or four elements into one word, or splits one element into two words.
    pub(crate) fn words_of(&mut self, dtype: Dtype, elements: &[Reg]) -> Vec<Reg> {
        match (elements, Class::of(dtype)) {
            (_, Class::Pred) => {
                let bytes: Vec<Reg> = elements.iter().map(|element| self.byte(*element)).collect();
                if let [byte] = bytes[..] { vec![byte] } else { vec![self.pack(&bytes)] }
            }
            ([x], Class::B64 | Class::F64) => {
                let [low, high] = [0; 2].map(|_| self.reg(Class::B32));
                asm!(self, "mov.b64 {{{low}, {high}}}, {x}");
                vec![low, high]
            }
            ([x], Class::B16) => vec![self.pack(&[*x, *x])],
            ([x], _) => vec![*x],
            _ => vec![self.pack(elements)],
        }
    }

    /// The inverse of [`Emitter::words_of`], for `count` elements.
    pub(crate) fn elements_of(&mut self, dtype: Dtype, words: &[Reg], count: usize) -> Vec<Reg> {
        match (words, Class::of(dtype)) {
            ([low, high], class) => {
                let x = self.reg(class);
                asm!(self, "mov.b64 {x}, {{{low}, {high}}}");
                vec![x]
            }
            ([word], Class::B16) => {
                let [low, high] = [0; 2].map(|_| self.reg(Class::B16));
                asm!(self, "mov.b32 {{{low}, {high}}}, {word}");
                [low, high][..count].to_vec()
            }
            ([word], Class::Pred) if count == 1 => vec![self.predicate(*word)],
            (words, _) if count == 1 => words.to_vec(),
            (words, _) => {
                let (bits, sign) = (32 / count, if dtype.is_signed_int() { 's' } else { 'u' });
                let parts = (0..count).map(|part| {
                    let element = self.reg(Class::B32);
                    asm!(self, "bfe.{sign}32 {element}, {}, {}, {bits}", words[0], part * bits);
                    if dtype == Dtype::Bool { self.predicate(element) } else { element }
                });
                parts.collect()
            }
        }
    }

    /// The bits that are set in `word` or in one of the words `before`.
    pub(crate) fn or(&mut self, before: Option<Reg>, word: Reg) -> Reg {
        let Some(before) = before else { return word };
        let either = self.reg(Class::B32);
        asm!(self, "or.b32 {either}, {before}, {word}");
        either
    }

    /// The words of the lane that `lane` selects; `mode` is `idx` or `bfly`.
    pub(crate) fn shuffle(&mut self, mode: &str, words: &[Reg], lane: impl std::fmt::Display) -> Vec<Reg> {
        let exchanged = words.iter().map(|word| {
            let d = self.reg(word.class);
            asm!(self, "shfl.sync.{mode}.b32 {d}, {word}, {lane}, 31, 0xffffffff");
            d
        });
        exchanged.collect()
    }

    /// `on_true` if `cond` holds, else `on_false`, for each word or element.
    pub(crate) fn choose(&mut self, cond: Reg, on_true: &[Reg], on_false: &[Reg]) -> Vec<Reg> {
        let chosen = on_true.iter().zip(on_false).map(|(yes, no)| {
            if yes == no {
                return *yes;
            }
            let d = self.reg(yes.class);
            if yes.class == Class::Pred {
                let [taken, otherwise, not] = [0; 3].map(|_| self.reg(Class::Pred));
                asm!(self, "and.pred {taken}, {cond}, {yes}");
                asm!(self, "not.pred {not}, {cond}");
                asm!(self, "and.pred {otherwise}, {not}, {no}");
                asm!(self, "or.pred {d}, {taken}, {otherwise}");
            } else {
                asm!(self, "selp.{} {d}, {yes}, {no}, {cond}", yes.class.suffix());
            }
            d
        });
        chosen.collect()
    }

    /// The thread's index in its CTA.
    pub(crate) fn thread(&self) -> Reg {
        self.threads.number()
    }

    /// A predicate: whether this bit of the thread index is set.
    pub(crate) fn thread_bit(&mut self, bit: usize) -> Reg {
        let (masked, is_set, thread) = (self.reg(Class::B32), self.reg(Class::Pred), self.thread());
        asm!(self, "and.b32 {masked}, {thread}, {}", 1 << bit);
        asm!(self, "setp.ne.s32 {is_set}, {masked}, 0");
        is_set
    }

    /// The xor of the values whose bit of the thread index is set; `None` if all values are 0. Bits that move by the same distance are
    /// shifted together, so a run of bits costs two instructions.
    pub(crate) fn xor_of_thread_bits(&mut self, values: &[u32]) -> Option<Reg> {
        let thread = self.thread();
        let mut sum: Option<Reg> = None;
        for distance in -31..32i32 {
            let lands = |bit: &usize| {
                let to = *bit as i32 + distance;
                (0..32).contains(&to) && values[*bit] >> to & 1 == 1
            };
            let mask: u32 = (0..values.len()).filter(lands).map(|bit| 1 << bit).sum();
            if mask == 0 {
                continue;
            }
            let mut term = self.reg(Class::B32);
            asm!(self, "and.b32 {term}, {thread}, {mask}");
            if distance != 0 {
                let moved = self.reg(Class::B32);
                let shift = if distance > 0 { "shl.b32" } else { "shr.u32" };
                asm!(self, "{shift} {moved}, {term}, {}", distance.abs());
                term = moved;
            }
            sum = Some(sum.map_or(term, |sum| {
                let both = self.reg(Class::B32);
                asm!(self, "xor.b32 {both}, {sum}, {term}");
                both
            }));
        }
        sum
    }
}
