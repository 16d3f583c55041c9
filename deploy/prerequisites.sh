# Sourced by the scripts that build. Installs what a bare Debian or Ubuntu with Rust lacks for building RocksDB,
# and says what to do where it cannot.

# Where the checkout is, whatever the current directory.
GRUNDY_ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

# A relative target directory is meant from here, not from the checkout, where cargo runs.
case ${CARGO_TARGET_DIR:-} in
    '' | /*) ;;
    *) export CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR ;;
esac

say() { printf '%s\n' "$*" >&2; }

have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    # bindgen loads libclang at build time; any of its usual places will do.
    # (libclang-cpp is another library.)
    ldconfig -p 2>/dev/null | grep -Eq 'libclang(-[0-9.]+)?\.so' && return 0
    compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null
}

need_packages() {
    local missing=()
    command -v c++ >/dev/null || missing+=(g++)
    command -v make >/dev/null || missing+=(make)
    have_libclang || missing+=(libclang-dev)
    [ ${#missing[@]} -eq 0 ] && return 0
    if ! command -v apt-get >/dev/null; then
        say "Building RocksDB needs a C++ compiler, make and libclang (missing: ${missing[*]}). Install them and run this again."
        return 1
    fi
    local run=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { say "Please install as root: apt-get install ${missing[*]}"; return 1; }
        run=(sudo)
    fi
    say "Installing ${missing[*]} (needed to build RocksDB) ..."
    "${run[@]}" apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

need_rust() {
    command -v cargo >/dev/null || { [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"; }
    local least found
    least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$GRUNDY_ROOT/Cargo.toml")
    if ! command -v cargo >/dev/null; then
        say "Rust is not installed: $least or newer is needed. See https://rustup.rs, then run this again."
        return 1
    fi
    # In the checkout, where cargo runs: rustup may have another toolchain for it.
    found=$(cd "$GRUNDY_ROOT" && cargo --version | sed 's/^cargo \([0-9.]*\).*/\1/')
    [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] && return 0
    say "Rust $least or newer is needed, this is $found: run 'rustup update stable' (or see https://rustup.rs), then run this again."
    return 1
}

# Builds the whole workspace, always with the same features: a partial build would compile RocksDB another time.
build_grundy() {
    need_rust && need_packages || return 1
    local target=${CARGO_TARGET_DIR:-$GRUNDY_ROOT/target}
    if ! compgen -G "$target/release/build/librocksdb-sys-*/output" >/dev/null; then
        say "Building. The first build compiles RocksDB, which takes 10 to 20 minutes on two cores; later builds take seconds."
    fi
    (cd "$GRUNDY_ROOT" && cargo build --release --locked --workspace "$@")
}

# Where the programs are after build_grundy.
grundy_bin() { printf '%s/release' "${CARGO_TARGET_DIR:-$GRUNDY_ROOT/target}"; }
