//! What a recording leaves out, and what its targets are given.

use super::masks::Masks;
use crate::chromium::browser::world::Numbers;
use crate::page::secrets::LeftOut;
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Rules {
    /// Parameters of `Emulation.setUserAgentOverride` for frames of other sites and workers, which do
    /// not have those of the tab.
    pub identity: Option<Value>,
    /// The random numbers of documents and workers, if the browser has a seed.
    pub numbers: Option<Numbers>,
    /// Most bytes of a body; the rest is cut off.
    pub body_max: u64,
    /// Headers that are left out.
    pub left_out: LeftOut,
    /// What stands for cookies of the persona.
    pub masks: Arc<Masks>,
    /// Whether media of which the page has not read all are completed.
    pub completes_media: bool,
}
