//! Certificates: the authorities that a browser trusts, that of the client, and who issued the one that
//! was refused.

pub mod authorities;
pub mod client_certificate;
pub mod issuer;
