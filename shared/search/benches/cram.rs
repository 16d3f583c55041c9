//! What Cram costs: building tables, and searching boards over tables that are there.
//!
//! `cargo bench -p grundy-search --bench cram`. Expansions, which do not depend on the machine, are printed before the times.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grundy_games::cram::{CramPlan, Problem};
use grundy_search::cram::CramEngine;
use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{BuiltTables, Size, StripTables, sizes};
use grundy_search::table::Namespace;
use std::hint::black_box;
use std::sync::Arc;

#[path = "../tests/support/mod.rs"]
mod support;

/// The ends of a strip, and the pair table over them.
fn building(criterion: &mut Criterion) {
    for (height, columns) in [(3, 10), (4, 7), (5, 5)] {
        let size = Size {
            height,
            class_columns: usize::div_ceil(columns, 2),
            ends: usize::MAX,
            pair_columns: columns,
            bytes: usize::MAX,
        };
        let Some(classes) = size.classes() else { continue };
        let (left, right) = PairTable::size(&classes, columns, usize::MAX);
        let mut nimbers = vec![0; PairTable::bytes_for(&classes, left, right)];
        let mut group = criterion.benchmark_group("build");
        group.sample_size(10);
        let name = format!("{height} rows");
        group.bench_function(BenchmarkId::new("classes", &name), |b| b.iter(|| black_box(size.classes())));
        group.throughput(Throughput::Elements(nimbers.len() as u64));
        group.bench_function(BenchmarkId::new("pairs", &name), |b| {
            b.iter(|| PairTable::fill(&classes, left, right, black_box(&mut nimbers), 1, &|_| true));
        });
    }
}

/// Boards over tables of 128 MiB, and the plain engine as the baseline where it ends.
fn searching(criterion: &mut Criterion) {
    let tables: Arc<dyn StripTables> = Arc::new(BuiltTables::new(128 << 20));
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10);
    for (board, plain_too) in
        [("3x11", true), ("4x7", true), ("5x6", true), ("3x14", false), ("4x9", false), ("5x8", false)]
    {
        let Ok(problem) = Problem::from_text("", board, "nimber") else { continue };
        let (rows, columns) = (problem.position.rows(), problem.position.columns());
        // Kept in memory while the engines come and go.
        let _tables: Vec<_> = sizes(u32::from(rows), u32::from(columns), tables.bytes())
            .map(|size| tables.strip_table(size))
            .collect();
        let engine = |plain: bool| {
            let table = Arc::new(support::MapTable::default());
            if plain {
                CramEngine::plain(Namespace(0), table)
            } else {
                CramEngine::new(Namespace(0), table, Arc::clone(&tables))
            }
        };
        for plain in [false, true].into_iter().filter(|plain| !plain || plain_too) {
            let name = if plain { "plain" } else { "strips" };
            let solve = || support::answer(&CramPlan::new(&problem), &mut engine(plain));
            if let Ok((answer, expansions)) = solve() {
                println!("{name}/{board}: {answer:?}, {expansions} expansions");
            }
            group.bench_function(BenchmarkId::new(name, board), |b| b.iter(|| black_box(solve().is_ok())));
        }
    }
}

criterion_group!(cram, building, searching);
criterion_main!(cram);
