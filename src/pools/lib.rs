//! Workers of pools whose health check failed: what the failure proves ([`fault`]), the end of a worker
//! ([`unhealthy`]), and what is left of it for `archivist pool status` ([`health`]). archivist-generator makes
//! the units of pools, and systemd starts them; the orchestrator is not involved.

pub mod fault;
pub mod health;
pub mod unhealthy;
