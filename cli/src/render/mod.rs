//! What answers look like: tables and sentences for people, JSON for programs.

pub mod action;
pub mod change;
pub mod dead_letter;
pub mod decision;
pub mod history;
pub mod job;
pub mod lineage;
pub mod news;
pub mod pending;
pub mod policy;
pub mod pools;
pub mod queue;
pub mod run;
pub mod table;
pub mod time;
pub mod usage;
pub mod way_out;
pub mod why;
