//! The gRPC services: messages in, checks, one question to the core, messages out.

pub(crate) mod convert;
mod relay;
mod runs;
pub mod status;
pub mod user;
pub mod worker;

pub(crate) use convert::job_view;
