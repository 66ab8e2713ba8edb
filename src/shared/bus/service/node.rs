//! The interface of the fleet service.

use super::limits::invalid;
use super::{Calls, ask};
use crate::bus::call::{Call, NodeCall, Reply};
use crate::bus::documents::bounds::DELIVERY_MAX;
use std::sync::Arc;
use zbus::{fdo, interface};

pub(super) struct Node(pub(super) Calls);

impl Node {
    async fn call<T>(&self, make: impl FnOnce(Reply<T>) -> NodeCall) -> fdo::Result<T> {
        ask(&self.0, |reply| Call::Node(make(reply))).await
    }
}

/// The bus policy decides who may call this interface: the fleet service.
#[interface(name = "org.archivist1.Node")]
impl Node {
    async fn holdings(&self) -> fdo::Result<String> {
        self.call(|reply| NodeCall::Holdings { reply }).await
    }

    async fn deliver(&self, delivery: &str) -> fdo::Result<()> {
        if delivery.len() > DELIVERY_MAX {
            return Err(invalid(format!(
                "a reply of {} bytes: the limit is {DELIVERY_MAX}",
                delivery.len()
            )));
        }
        let delivery = Arc::new(serde_json::from_str(delivery).map_err(invalid)?);
        self.call(|reply| NodeCall::Deliver { delivery, reply })
            .await
    }

    async fn stop(&self) -> fdo::Result<()> {
        self.call(|reply| NodeCall::Stop { reply }).await
    }

    async fn leave(&self) -> fdo::Result<()> {
        self.call(|reply| NodeCall::Leave { reply }).await
    }

    #[zbus(name = "Await")]
    async fn wait(&self) -> fdo::Result<()> {
        self.call(|reply| NodeCall::Await { reply }).await
    }
}
