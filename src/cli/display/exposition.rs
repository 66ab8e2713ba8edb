//! Metrics as text: OpenMetrics 1.0 (RFC draft-richih-opsawg-openmetrics), and the text format 0.0.4 of
//! Prometheus, which node exporter reads from files.

use std::fmt::Write;

/// The format of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// OpenMetrics 1.0
    #[default]
    Openmetrics,
    /// The older text format of Prometheus, for the textfile collector of node exporter
    Prometheus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Gauge,
    /// Only increases, except when the database is new. Samples have the suffix `_total`.
    Counter,
    Histogram,
    /// Labels with the value 1. The sample has the suffix `_info`.
    Info,
}

pub type MetricLabel<'a> = (&'a str, &'a str);

pub struct Exposition {
    format: Format,
    text: String,
    /// Name and kind of the metric whose samples follow.
    name: &'static str,
    kind: MetricKind,
}

impl Exposition {
    pub fn new(format: Format) -> Exposition {
        Exposition { format, text: String::new(), name: "", kind: MetricKind::Gauge }
    }

    /// Begins a metric. `name` ends in its unit, if it has one, and has no suffix of its kind.
    pub fn metric(&mut self, kind: MetricKind, name: &'static str, help: &str) {
        (self.name, self.kind) = (name, kind);
        let (full, of_kind) = match (self.format, kind) {
            (Format::Prometheus, MetricKind::Info) => (format!("{name}_info"), "gauge"),
            (Format::Prometheus, MetricKind::Counter) => (format!("{name}_total"), "counter"),
            (_, MetricKind::Info) => (name.to_owned(), "info"),
            (_, MetricKind::Counter) => (name.to_owned(), "counter"),
            (_, MetricKind::Gauge) => (name.to_owned(), "gauge"),
            (_, MetricKind::Histogram) => (name.to_owned(), "histogram"),
        };
        self.line(format_args!("# HELP {full} {help}"));
        self.line(format_args!("# TYPE {full} {of_kind}"));
        let units = ["seconds", "bytes"];
        let unit = units.iter().find(|unit| name.ends_with(*unit));
        if let (Format::Openmetrics, Some(unit)) = (self.format, unit) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
    }

    pub fn sample(&mut self, labels: &[MetricLabel<'_>], value: f64) {
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.row(suffix, labels, value);
    }

    /// Writes a metric with one sample without labels.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: f64) {
        self.metric(MetricKind::Gauge, name, help);
        self.sample(&[], value);
    }

    /// Writes the samples of a histogram: the count of each bucket alone, and the sum of all values.
    /// `None` is the bucket without a bound, the last.
    pub fn histogram(&mut self, label: MetricLabel<'_>, buckets: &[(Option<f64>, u64)], sum: f64) {
        let mut so_far = 0;
        for (bound, count) in buckets {
            so_far += count;
            let bound = match bound {
                Some(bound) => float(*bound),
                None => "+Inf".to_owned(),
            };
            self.row("_bucket", &[label, ("le", bound.as_str())], so_far as f64);
        }
        self.row("_count", &[label], so_far as f64);
        self.row("_sum", &[label], sum);
    }

    pub fn finish(mut self) -> String {
        if self.format == Format::Openmetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn row(&mut self, suffix: &str, labels: &[MetricLabel<'_>], value: f64) {
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        let name = self.name;
        self.line(format_args!("{name}{suffix}{labels} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// A number with a fraction, as OpenMetrics wants those of buckets.
fn float(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_differ_in_counters_and_at_the_end() {
        let text = |format| {
            let mut out = Exposition::new(format);
            out.metric(MetricKind::Counter, "a_bytes", "Help.");
            out.sample(&[("host", "x\"\\\n")], 3.0);
            out.metric(MetricKind::Histogram, "b_seconds", "Help.");
            out.histogram(("p", "q"), &[(Some(1.0), 2), (Some(2.5), 0), (None, 1)], 9.5);
            out.finish()
        };
        assert_eq!(
            text(Format::Openmetrics),
            "# HELP a_bytes Help.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
             a_bytes_total{host=\"x\\\"\\\\\\n\"} 3\n\
             # HELP b_seconds Help.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\n\
             b_seconds_bucket{p=\"q\",le=\"1.0\"} 2\nb_seconds_bucket{p=\"q\",le=\"2.5\"} 2\n\
             b_seconds_bucket{p=\"q\",le=\"+Inf\"} 3\nb_seconds_count{p=\"q\"} 3\n\
             b_seconds_sum{p=\"q\"} 9.5\n# EOF\n"
        );
        let older = text(Format::Prometheus);
        assert!(older.starts_with("# HELP a_bytes_total Help.\n# TYPE a_bytes_total counter\n"));
        assert!(!older.contains("UNIT") && !older.contains("EOF"));
    }

    proptest::proptest! {
        /// No value of a label ends its line or its quotation marks.
        #[test]
        fn labels_stay_on_their_line(value in ".*") {
            let mut out = Exposition::new(Format::Openmetrics);
            out.metric(MetricKind::Gauge, "a", "Help.");
            out.sample(&[("b", &value)], 1.0);
            let text = out.finish();
            proptest::prop_assert_eq!(text.matches('\n').count(), 4);
            let inner = escaped(&value).replace("\\\\", "").replace("\\\"", "");
            proptest::prop_assert!(!inner.contains('"'));
        }
    }
}
