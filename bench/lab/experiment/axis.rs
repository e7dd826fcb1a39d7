//! An axis of a figure: positions and labels of its ticks.
//!
//! Decides: ticks are round numbers from 0, powers of ten, or the numbers of shards in the data.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis with ticks of our choice.
pub struct Axis {
    /// Its range.
    pub range: Range<f64>,
    /// Positions of its ticks.
    pub ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        told(*value)
    }
}

/// Round numbers from 0 until all of `values` are covered.
pub fn ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max).max(1e-6);
    let magnitude = 10f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * magnitude);
    let step = steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(magnitude * 10.0);
    (0..=(most / step - 1e-9).ceil() as u32).map(|count| f64::from(count) * step).collect()
}

/// The powers of ten around these logarithms, as logarithms, and the range they span.
pub fn powers_of_ten(logarithms: impl Iterator<Item = f64>) -> (Vec<f64>, Range<f64>) {
    let (least, most) =
        logarithms.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| (least.min(it), most.max(it)));
    let (first, last) = (least.max(-12.0).floor(), most.min(12.0).ceil());
    let last = if last > first { last } else { first + 1.0 };
    let ticks = (0..=(last - first) as u32).map(|power| first + f64::from(power)).collect();
    (ticks, first..last + 0.1)
}

/// Formats a power of ten by its logarithm.
pub fn power(logarithm: f64) -> String {
    let number = 10f64.powf(logarithm);
    let digits = if logarithm < 0.0 { (-logarithm).ceil() as usize } else { 0 };
    format!("{number:.digits$}")
}

/// The numbers of shards in the data, as logarithms.
pub fn shards_ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.map(|value| value.max(1.0).log2()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The last tick.
pub fn last(ticks: &[f64]) -> f64 {
    ticks.last().copied().filter(|last| *last > 0.0).unwrap_or(1.0)
}

/// A number without insignificant digits.
pub fn told(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_pass_all() {
        assert_eq!(ticks([0.93].into_iter()), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks([37.0].into_iter()), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks([0.0].into_iter()).len(), ticks([1e-6].into_iter()).len());
        assert_eq!([0.6000000000000001, 2.5, 8.0].map(told), ["0.6", "2.5", "8"]);
        assert_eq!(powers_of_ten([-1.5, 0.3].into_iter()), (vec![-2.0, -1.0, 0.0, 1.0], -2.0..1.1));
        assert_eq!(powers_of_ten([2.0].into_iter()).0, [2.0, 3.0]);
        assert_eq!([-3.0, -1.0, 0.0, 2.0].map(power), ["0.001", "0.1", "1", "100"]);
    }
}
