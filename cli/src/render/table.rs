//! Plain tables: a header, columns with two blanks between them, no lines. They can be cut up by other programs.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use osprey_model::message::words::shown;

/// A table on its way.
pub struct Columns {
    table: Table,
    right: Vec<usize>,
}

impl Columns {
    /// A table with these headings; one that begins with `>` is for numbers and stands to the right.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        let right = headings.iter().enumerate().filter(|(_, h)| h.starts_with('>')).map(|(index, _)| index).collect();
        let mut columns = Self { table: Table::new(), right };
        columns.table.load_style(comfy_table::presets::NOTHING);
        columns.table.set_content_arrangement(ContentArrangement::Disabled);
        let headings: Vec<String> = headings.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        let cells = columns.cells(headings);
        columns.table.set_header(cells);
        columns
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = self.cells(cells);
        self.table.add_row(cells);
    }

    fn cells(&self, texts: impl IntoIterator<Item = String>) -> Vec<Cell> {
        let is_right = |index: &usize| self.right.contains(index);
        texts
            .into_iter()
            .enumerate()
            .map(|(index, text)| {
                let alignment = if is_right(&index) { CellAlignment::Right } else { CellAlignment::Left };
                Cell::new(shown(&text)).set_alignment(alignment)
            })
            .collect()
    }

    /// The lines, without blanks at their ends and without the one that the style puts at their start.
    #[must_use]
    pub fn render(&self) -> String {
        let lines = self.table.lines().map(|line| {
            let line = line.trim_end();
            line.strip_prefix(' ').unwrap_or(line).to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_nothing_stands_at_the_ends() {
        let mut columns = Columns::new(&["NAME", ">GPUS", "STATE"]);
        columns.row(["train-7", "8", "running"].map(str::to_owned));
        columns.row(["x", "16", ""].map(str::to_owned));
        assert_eq!(columns.render(), "NAME     GPUS  STATE\ntrain-7     8  running\nx          16");
    }

    #[test]
    fn a_cell_can_neither_forge_a_row_nor_speak_to_the_terminal() {
        let mut columns = Columns::new(&["NAME", "STATE"]);
        columns.row(["a\n99 done\u{1b}[2J\u{202e}", "running"].map(str::to_owned));
        let want = "NAME                            STATE\na\\u{a}99 done\\u{1b}[2J\\u{202e}  running";
        assert_eq!(columns.render(), want);
    }
}
