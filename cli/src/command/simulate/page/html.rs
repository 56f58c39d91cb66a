//! Writing HTML: text that can't be anything but text, and frames around plots.

use std::fmt::Write as _;

use super::scale::Tick;

/// Text as HTML: nothing of it can be a tag, an attribute's end or a script's.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Signs that turn the direction of writing, or that no page may hold.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// JSON inside of a script element: no `<` that could end it.
pub fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// A plot with its axes. The drawing is stretched to the frame, and texts are not.
pub struct Frame<'a> {
    /// What it shows, for whoever can't see it.
    pub label: &'a str,
    /// Height in pixels.
    pub height: u32,
    /// Ticks from the left to the right.
    pub x: &'a [Tick],
    /// Ticks from the bottom to the top.
    pub y: &'a [Tick],
    /// Size of the drawing's own units.
    pub size: (f64, f64),
    /// The drawing.
    pub drawing: &'a str,
    /// The name under which a script finds the numbers; empty for none.
    pub key: &'a str,
}

impl Frame<'_> {
    /// The element.
    pub fn html(&self) -> String {
        let Self { label, height, size: (width, tall), drawing, key, .. } = self;
        let mut grid = String::new();
        for tick in self.x {
            let _ = write!(grid, "M{:.1},0V{tall}", tick.at * width);
        }
        for tick in self.y {
            let _ = write!(grid, "M0,{:.2}H{width}", tall - tick.at * tall);
        }
        let named = if key.is_empty() { String::new() } else { format!(" data-plot=\"{}\"", escaped(key)) };
        format!(
            "<div class=\"frame\" style=\"--h:{height}px\"><div class=\"y\">{}</div><div class=\"area\"{named}>\
             <svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {tall}\" preserveAspectRatio=\"none\">\
             <path class=\"grid\" d=\"{grid}\"/>{drawing}</svg></div><div class=\"x\">{}</div></div>",
            ticks(self.y, "bottom"),
            escaped(label),
            ticks(self.x, "left"),
        )
    }
}

/// Ticks as text. Every second one makes room on a narrow screen; those at the end stay inside.
fn ticks(ticks: &[Tick], side: &str) -> String {
    let one = |(index, tick): (usize, &Tick)| {
        let mut class = if index % 2 == 1 { "odd".to_owned() } else { String::new() };
        if tick.at > 0.96 {
            class.push_str(" last");
        } else if tick.at < 0.02 {
            class.push_str(" first");
        }
        format!(
            "<span class=\"{}\" style=\"{side}:{:.2}%\">{}</span>",
            class.trim(),
            tick.at * 100.0,
            escaped(&tick.text)
        )
    };
    ticks.iter().enumerate().map(one).collect()
}

/// A legend: the class of each colour, and what it stands for.
pub fn legend<'a>(items: impl IntoIterator<Item = (String, &'a str)>) -> String {
    let one = |(class, text): (String, &str)| format!("<li><i class=\"{class}\"></i>{}</li>", escaped(text));
    format!("<ul class=\"legend\">{}</ul>", items.into_iter().map(one).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        let text = "<script>alert('1')</script> & \"x\"\u{202e}\u{0}";
        assert_eq!(
            escaped(text),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;\u{fffd}\u{fffd}"
        );
        assert_eq!(script_json(&serde_json::json!({ "a": "</script>" })), "{\"a\":\"\\u003c/script>\"}");
    }
}
