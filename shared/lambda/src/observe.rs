//! What is told on the way becomes numbers: an event with a field `metric` is a value of the metric of that name.
//!
//! The code that decides knows nothing of CloudWatch. It says what happened, as an event with `metric`, `amount` (1
//! without) and the metric's dimensions in small letters; here the values of an invocation are added up.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::metrics::{METRICS, Values, named};

/// Adds up the values of events.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<Values>>);

impl Counts {
    /// Takes everything that was added up.
    #[must_use]
    pub fn take(&self) -> Values {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes every count that has no dimension but the stack a number, if only 0: an alarm has to tell "none" from
    /// "nothing was said".
    pub fn add_zeros(&self) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for metric in METRICS.into_iter().filter(|metric| metric.adds && metric.dimensions.is_empty()) {
            values.note(metric, 0.0, |_| None);
        }
    }

    /// Whether an event is of interest here.
    #[must_use]
    pub fn concerns(metadata: &tracing::Metadata<'_>) -> bool {
        metadata.fields().field("metric").is_some()
    }

    /// Writes everything that was added up to standard output, where Lambda's log service finds it.
    pub fn write(&self, stack: &str) {
        let now = jiff::Timestamp::now().as_millisecond();
        let mut out = std::io::stdout().lock();
        for line in self.take().lines(stack, now) {
            // A line that can't be written is a gap in a graph, and there is nowhere else to say so.
            let _ = writeln!(out, "{line}");
        }
    }
}

impl<S: Subscriber> Layer<S> for Counts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !Self::concerns(event.metadata()) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(metric) = named(&fields.metric) else { return };
        let dimension = |name: &str| {
            let wanted = name.to_lowercase();
            fields.texts.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text.clone())
        };
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.note(metric, fields.amount.unwrap_or(1.0), dimension);
    }
}

#[derive(Default)]
struct Fields {
    metric: String,
    amount: Option<f64>,
    texts: Vec<(&'static str, String)>,
}

impl Fields {
    fn number(&mut self, field: &Field, value: f64) {
        if field.name() == "amount" {
            self.amount = Some(value);
        } else {
            self.texts.push((field.name(), value.to_string()));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "metric" {
            value.clone_into(&mut self.metric);
        } else {
            self.texts.push((field.name(), value.to_owned()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.texts.push((field.name(), format!("{value:?}")));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field, value);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value as f64);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value as f64);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn an_event_with_a_metric_is_a_value_of_it() {
        let counts = Counts::default();
        let subscriber = tracing_subscriber::registry().with(counts.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(metric = "JobsRequeued", class = %"host_lost", "an attempt comes back.");
            tracing::info!(metric = "JobsRequeued", class = "host_lost", amount = 2_u32, "two more.");
            tracing::info!(metric = "Unheard", "nothing");
            tracing::info!(amount = 7, "no metric");
        });
        let lines = counts.take().lines("s", 0);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with(r#""Stack":"s","Class":"host_lost","JobsRequeued":3.0}"#), "{lines:?}");
        assert_eq!(counts.take(), Values::default(), "what was taken is gone");
    }
}
