//! Facts of this host that belong to a figure.

use std::fs;

use crate::evidence::gpu::GpuIdentity;

/// Kernel, processor, cores and memory, name and value; what cannot be read is left out.
pub fn facts() -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    let line = |path: &str| fs::read_to_string(path).ok().map(|t| t.trim().to_owned());
    add("kernel", line("/proc/sys/kernel/osrelease"));
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        cpu.lines()
            .find(|l| l.starts_with(name))
            .and_then(|l| l.split_once(':'))
            .map(|(_, v)| v.trim().to_owned())
    };
    add("processor", field("model name"));
    add(
        "cores",
        std::thread::available_parallelism()
            .ok()
            .map(|n| n.to_string()),
    );
    let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|t| {
        let kib: f64 = t
            .lines()
            .find(|l| l.starts_with("MemTotal"))?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some(format!("{:.1} GiB", kib / 1024.0 / 1024.0))
    });
    add("memory", memory);
    facts
}

/// Name, driver and UUID of each GPU, name and value.
pub fn gpus(identities: &[GpuIdentity]) -> Vec<(String, String)> {
    identities
        .iter()
        .map(|gpu| {
            let told = [&gpu.name, &gpu.driver, &gpu.vbios, &gpu.uuid];
            let value: Vec<&str> = told.into_iter().flatten().map(String::as_str).collect();
            (format!("GPU {}", gpu.index), value.join(" · "))
        })
        .collect()
}
