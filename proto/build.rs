//! Compiles the protocol without `protoc`, and keeps its descriptor set for gRPC reflection.

use prost::Message;
use std::path::PathBuf;

const ROOT: &str = ".";
const FILES: [&str; 3] = ["grundy/v1/common.proto", "grundy/v1/worker.proto", "grundy/v1/grundy.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::Compiler::new([ROOT])?
        .include_source_info(true)
        .include_imports(true)
        .open_files(FILES)?
        .file_descriptor_set();
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("grundy_descriptor.bin"), descriptors.encode_to_vec())?;
    // Entries go to many listeners at a time, and are not copied for each.
    tonic_prost_build::configure().bytes(".grundy.v1.Told.entries").compile_fds(descriptors)?;
    Ok(())
}
