//! Speed-up and efficiency against workers, as an SVG picture.

use super::Measurement;
use plotters::prelude::*;
use std::error::Error;
use std::num::NonZeroU64;

/// Speed-ups published for parallel proof-number search on another game, for orientation: cores and speed-up (Cizek, Balko and Schmid,
/// "A Massively Parallel Proof-Number Search for Impartial Games and Beyond", arXiv 2511.10339).
pub const PUBLISHED: [(f64, f64); 3] = [(1.0, 1.0), (64.0, 40.9), (1024.0, 333.0)];

/// What less counts as: the axis is logarithmic.
const LEAST: f64 = 1e-3;

/// The size of one of the two charts, in pixels.
const SIZE: (u32, u32) = (480, 400);

/// Draws speed-up and efficiency against the plain engine's nodes.
///
/// # Errors
/// In words: the drawing library's.
pub fn svg(
    title: &str,
    measured: &[Measurement],
    sequential_nodes: u64,
    nodes_per_second: NonZeroU64,
) -> Result<String, String> {
    let speedups: Vec<(f64, f64)> = measured
        .iter()
        .map(|m| (f64::from(m.workers), m.speedup(sequential_nodes, nodes_per_second).max(LEAST)))
        .collect();
    draw(title, &speedups).map_err(|error| error.to_string())
}

fn draw(title: &str, speedups: &[(f64, f64)]) -> Result<String, Box<dyn Error>> {
    let most = speedups.iter().fold(2.0, |most: f64, (workers, _)| most.max(*workers));
    let least = speedups.iter().fold(1.0, |least: f64, (_, speedup)| least.min(*speedup));
    let greatest = speedups.iter().fold(most, |greatest, (_, speedup)| greatest.max(*speedup));
    let published = || PUBLISHED.into_iter().filter(|(cores, _)| *cores <= most);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (2 * SIZE.0, SIZE.1)).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.titled(title, ("sans-serif", 18))?.split_horizontally(SIZE.0);

        let mut chart = ChartBuilder::on(&left)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(48)
            .build_cartesian_2d((1.0..most).log_scale().base(2.0), (least..greatest).log_scale().base(2.0))?;
        let whole = |number: &f64| format!("{number}");
        chart
            .configure_mesh()
            .x_desc("workers")
            .y_desc("speed-up")
            .x_label_formatter(&whole)
            .y_label_formatter(&whole)
            .light_line_style(TRANSPARENT)
            .draw()?;
        chart
            .draw_series(LineSeries::new([(1.0, 1.0), (most, most)], BLACK.mix(0.4)))?
            .label("ideal")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLACK.mix(0.4)));
        chart
            .draw_series(LineSeries::new(published(), RED.mix(0.7)).point_size(3))?
            .label("published, another game")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], RED.mix(0.7)));
        chart
            .draw_series(LineSeries::new(speedups.iter().copied(), BLUE.stroke_width(2)).point_size(3))?
            .label("this job")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE.stroke_width(2)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .draw()?;

        let efficiency = |(workers, speedup): (f64, f64)| (workers, speedup / workers);
        let top = speedups.iter().fold(1.0, |top: f64, of| top.max(efficiency(*of).1)) * 1.05;
        let mut chart = ChartBuilder::on(&right)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(48)
            .build_cartesian_2d((1.0..most).log_scale().base(2.0), 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc("workers")
            .y_desc("efficiency")
            .x_label_formatter(&whole)
            .light_line_style(TRANSPARENT)
            .draw()?;
        chart.draw_series(LineSeries::new([(1.0, 1.0), (most, 1.0)], BLACK.mix(0.4)))?;
        chart.draw_series(LineSeries::new(published().map(efficiency), RED.mix(0.7)).point_size(3))?;
        chart.draw_series(
            LineSeries::new(speedups.iter().copied().map(efficiency), BLUE.stroke_width(2)).point_size(3),
        )?;
        root.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_point_for_each_number_of_workers() {
        let measured = [1, 2, 4].map(|workers| Measurement {
            workers,
            makespan_us: 1000 / u64::from(workers),
            ..Measurement::default()
        });
        let rate = NonZeroU64::new(1_000_000).expect("it is a million");
        let text = svg("3x7", &measured, 1000, rate).expect("it can be drawn");
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
        assert!(text.contains("speed-up") && text.contains("efficiency") && text.contains("3x7"));
        // Three of ours in each chart, and one point that was published.
        assert_eq!(text.matches("<circle").count(), 8);
    }
}
