//! Grundy's wire protocol: the code generated from `grundy/v1/*.proto`, and conversions between messages and
//! the types of the games, with errors that name the field.
//!
//! The `.proto` files are the protocol's reference. No behaviour may enter here: no client, no server, no retry.

pub mod convert;
pub mod limits;

/// The generated messages and services of `grundy.v1`.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::unwrap_used,
    reason = "generated; its documentation is the comments of the .proto files"
)]
pub mod v1 {
    tonic::include_proto!("grundy.v1");
}

/// The encoded descriptor set of `grundy.v1`, for gRPC reflection.
pub const DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("grundy_descriptor");

/// The version of the worker protocol. A coordinator refuses a worker of another version at Register.
pub const PROTOCOL_VERSION: u32 = 4;
