//! What the GPUs did while a window was open: clocks, power, temperature, throttling, and whose processes ran on them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::absence::Sighting;

/// Reasons that make a figure of a throttled GPU worthless: hardware slowdown, software and hardware thermal, power brake.
pub const FAIL_MASK: u64 = 0xE8;

/// Reasons that are normal under full load and are told beside the figure: the software power cap.
pub const RECORD_MASK: u64 = 0x4;

/// The bit of an idle GPU: its low clock says nothing about the load.
pub const IDLE: u64 = 0x1;

/// Names of the bits of NVML's clocks event reasons.
const REASONS: &[(u64, &str)] = &[
    (0x1, "idle"),
    (0x2, "application clocks"),
    (0x4, "software power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x100, "display clocks"),
];

/// Which GPU it is. What the driver does not tell is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct GpuIdentity {
    /// NVML's index.
    pub index: u32,
    /// Product name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Version of the video BIOS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vbios: Option<String>,
    /// Version of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// PCI address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// The PCI Express link; present generation and width change with load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PcieLink>,
    /// Power limit in force, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Highest SM clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sm_mhz: Option<u32>,
    /// CUDA compute capability (`9.0`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
}

/// A PCI Express link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// Generation in use.
    pub generation: u32,
    /// Highest generation of GPU and slot together.
    pub max_generation: u32,
    /// Lanes in use.
    pub lanes: u32,
    /// Most lanes of GPU and slot together.
    pub max_lanes: u32,
}

/// One look at one GPU. What could not be read is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuSample {
    /// Seconds from the window's opening.
    pub at_s: f64,
    /// SM clock in MHz.
    pub sm_mhz: Option<u32>,
    /// Memory clock in MHz.
    pub memory_mhz: Option<u32>,
    /// Power in milliwatts.
    pub power_mw: Option<u32>,
    /// Temperature in °C.
    pub temperature_c: Option<u32>,
    /// Bits of NVML's clocks event reasons.
    pub reasons: Option<u64>,
    /// Share of the last sampling period in which a kernel ran, in percent.
    pub utilisation: Option<u32>,
    /// Device memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Energy since the driver was loaded, in millijoules.
    pub energy_mj: Option<u64>,
    /// Uncorrected ECC errors since the driver was loaded.
    pub ecc_uncorrected: Option<u64>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Process id in the host's namespace.
    pub pid: u32,
    /// Most device memory that it had in the window, in bytes; absent if the driver does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// In how many samples it was there.
    pub samples: u64,
}

/// Least, middle and greatest of some samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Median (the lower one of an even number).
    pub median: f64,
    /// Greatest.
    pub max: f64,
    /// How many samples.
    pub samples: u64,
}

/// How often a throttle reason was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The bit.
    pub bit: u64,
    /// Samples in which it was set.
    pub samples: u64,
}

/// How often a clock was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCount {
    /// MHz.
    pub mhz: u32,
    /// Samples.
    pub samples: u64,
}

/// One GPU over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSummary {
    /// Which GPU.
    pub identity: GpuIdentity,
    /// Looks taken.
    pub samples: u64,
    /// Looks at which the GPU told nothing at all.
    pub failed: u64,
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Longest time between two looks, in seconds: what was shorter may have gone unseen.
    pub largest_gap_s: f64,
    /// SM clock in MHz.
    pub sm_mhz: Option<Spread>,
    /// SM clocks while the GPU was not idle, ascending.
    pub busy_clocks: Vec<ClockCount>,
    /// Memory clock in MHz.
    pub memory_mhz: Option<Spread>,
    /// Power in watts.
    pub power_w: Option<Spread>,
    /// Temperature in °C.
    pub temperature_c: Option<Spread>,
    /// Utilisation in percent.
    pub utilisation: Option<Spread>,
    /// Most device memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Throttle reasons that were set, ascending by bit; absent if the driver does not tell them.
    pub reasons: Option<Vec<ReasonCount>>,
    /// Energy of the window in joules.
    pub energy_j: Option<f64>,
    /// Uncorrected ECC errors that came up in the window.
    pub ecc_uncorrected: Option<u64>,
    /// Processes seen, ascending by id.
    pub processes: Sighting<Vec<GpuProcess>>,
}

/// A throttle reason that was set in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Its name.
    pub reason: String,
    /// Samples in which it was set.
    pub samples: u64,
    /// Samples in all.
    pub of: u64,
    /// How it weighs.
    pub weight: ThrottleWeight,
}

/// How a throttle reason weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleWeight {
    /// The figure of this window cannot be judged.
    Disturbs,
    /// Told beside the figure.
    Recorded,
}

/// The SM clock of a busy GPU against a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockFloor {
    /// The floor in MHz.
    pub floor_mhz: u32,
    /// Busy samples below it.
    pub below: u64,
    /// Busy samples in all.
    pub of: u64,
    /// The lowest clock of a busy sample, in MHz.
    pub lowest_mhz: u32,
}

impl GpuSummary {
    /// Processes on this GPU that are not `ours`; absent if the driver does not tell processes.
    pub fn foreign_processes(&self, ours: &[u32]) -> Sighting<Vec<GpuProcess>> {
        match &self.processes {
            Sighting::Seen { value } => Sighting::Seen {
                value: value
                    .iter()
                    .filter(|p| !ours.contains(&p.pid))
                    .copied()
                    .collect(),
            },
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        }
    }

    /// Whether any of `ours` was seen on this GPU.
    pub fn runs_any_of(&self, ours: &[u32]) -> bool {
        self.processes
            .seen()
            .is_some_and(|processes| processes.iter().any(|p| ours.contains(&p.pid)))
    }

    /// Throttle reasons that were set and matter; absent if the driver does not tell them.
    pub fn throttles(&self) -> Sighting<Vec<Throttle>> {
        let Some(reasons) = &self.reasons else {
            return Sighting::absent(
                "the driver tells no throttle reasons",
                "look at `nvidia-smi -q -d PERFORMANCE`; a newer driver may tell them",
            );
        };
        let mattering = reasons
            .iter()
            .filter(|r| r.bit & (FAIL_MASK | RECORD_MASK) != 0);
        Sighting::Seen {
            value: mattering
                .map(|r| Throttle {
                    reason: reason_name(r.bit).to_owned(),
                    samples: r.samples,
                    of: self.samples,
                    weight: if r.bit & FAIL_MASK != 0 {
                        ThrottleWeight::Disturbs
                    } else {
                        ThrottleWeight::Recorded
                    },
                })
                .collect(),
        }
    }

    /// The SM clock while the GPU was busy, against a floor in MHz; absent if it never was busy or tells no clock.
    pub fn clock_floor(&self, floor_mhz: u32) -> Sighting<ClockFloor> {
        let Some(lowest) = self.busy_clocks.first() else {
            return Sighting::absent(
                "the GPU told no clock while it was busy",
                "measure a longer window, or look whether the load runs on this GPU",
            );
        };
        let count = |clocks: &[ClockCount]| clocks.iter().map(|c| c.samples).sum();
        let end = self.busy_clocks.partition_point(|c| c.mhz < floor_mhz);
        Sighting::Seen {
            value: ClockFloor {
                floor_mhz,
                below: count(&self.busy_clocks[..end]),
                of: count(&self.busy_clocks),
                lowest_mhz: lowest.mhz,
            },
        }
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in {} of {} samples",
            self.reason, self.samples, self.of
        )
    }
}

fn reason_name(bit: u64) -> &'static str {
    REASONS
        .iter()
        .find(|(known, _)| *known == bit)
        .map_or("unknown reason", |(_, name)| name)
}

/// Fields in which two GPUs that should be alike differ, each as `name: this / that`; index and UUID always differ and are left out.
pub fn identity_differences(a: &GpuIdentity, b: &GpuIdentity) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not told".to_owned());
    let number =
        |value: Option<f64>| value.map_or_else(|| "not told".to_owned(), |v| v.to_string());
    let pairs = [
        ("name", text(&a.name), text(&b.name)),
        ("vbios", text(&a.vbios), text(&b.vbios)),
        ("driver", text(&a.driver), text(&b.driver)),
        (
            "power limit (W)",
            number(a.power_limit_w),
            number(b.power_limit_w),
        ),
        (
            "highest SM clock (MHz)",
            number(a.max_sm_mhz.map(f64::from)),
            number(b.max_sm_mhz.map(f64::from)),
        ),
        (
            "PCI Express lanes at most",
            number(a.link.map(|l| f64::from(l.max_lanes))),
            number(b.link.map(|l| f64::from(l.max_lanes))),
        ),
    ];
    pairs
        .iter()
        .filter(|(_, a, b)| a != b)
        .map(|(name, a, b)| format!("{name}: {a} / {b}"))
        .collect()
}

/// Counts by value: exact spreads in the memory of the distinct values only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram(BTreeMap<u32, u64>);

impl Histogram {
    pub(crate) fn add(&mut self, value: Option<u32>) {
        if let Some(value) = value {
            *self.0.entry(value).or_default() += 1;
        }
    }

    pub(crate) fn spread(&self, scale: f64) -> Option<Spread> {
        let samples: u64 = self.0.values().sum();
        let (min, max) = (self.0.first_key_value()?.0, self.0.last_key_value()?.0);
        let mut before = 0;
        let median = self.0.iter().find(|(_, count)| {
            before += **count;
            before >= samples.div_ceil(2)
        });
        Some(Spread {
            min: f64::from(*min) * scale,
            median: f64::from(*median?.0) * scale,
            max: f64::from(*max) * scale,
            samples,
        })
    }

    pub(crate) fn clocks(&self) -> Vec<ClockCount> {
        let count = |(mhz, samples): (&u32, &u64)| ClockCount {
            mhz: *mhz,
            samples: *samples,
        };
        self.0.iter().map(count).collect()
    }
}
