//! The GPUs of this host through NVML, which is loaded when it is first asked for: a host without it has an absence.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::evidence::absence::Absent;
use crate::evidence::gpu::{GpuIdentity, GpuSample, GpuSummary, PcieLink};
use crate::evidence::gpu_tally::{GpuTally, ProcessSample};

/// Time between two looks. NVML renews its power reading about every 100 ms (the recording in `fixtures/gpu` shows it);
/// looking more often reads the same again.
const LOOK: Duration = Duration::from_millis(100);

/// Names of the library, the one without a development package first.
const LIBRARIES: &[&str] = &["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// What to do without NVML.
const NVML_CURE: &str = "run sekimon on the seat's host with the NVIDIA driver; in a container give it the `utility` capability \
     (`NVIDIA_DRIVER_CAPABILITIES=compute,utility`)";

/// The GPUs of this host.
#[derive(Debug, Clone)]
pub struct GpuWitness {
    nvml: Arc<Nvml>,
    identities: Vec<GpuIdentity>,
}

/// A window in which the GPUs are sampled.
#[derive(Debug)]
pub struct GpuWindow {
    ended: Arc<AtomicBool>,
    sampler: JoinHandle<Vec<GpuTally>>,
}

impl GpuWitness {
    /// Loads NVML and looks which GPUs there are; absent without library, driver or GPU.
    pub fn open() -> Result<Self, Absent> {
        let nvml = load().map_err(|error| Absent::new(format!("NVML: {error}"), NVML_CURE))?;
        let count = nvml
            .device_count()
            .map_err(|error| Absent::new(format!("NVML counts no GPUs: {error}"), NVML_CURE))?;
        let driver = nvml.sys_driver_version().ok();
        let identities: Vec<_> = (0..count)
            .filter_map(|index| Some(identity(&nvml.device_by_index(index).ok()?, index)))
            .map(|identity| GpuIdentity {
                driver: driver.clone(),
                ..identity
            })
            .collect();
        if identities.is_empty() {
            return Err(Absent::new("NVML shows no GPU", NVML_CURE));
        }
        Ok(Self {
            nvml: Arc::new(nvml),
            identities,
        })
    }

    /// The GPUs.
    pub fn identities(&self) -> &[GpuIdentity] {
        &self.identities
    }

    /// Begins to sample every GPU, on a thread of its own so that a busy runtime does not make gaps.
    pub fn window(&self) -> Result<GpuWindow, Absent> {
        let ended = Arc::new(AtomicBool::new(false));
        let (nvml, flag) = (Arc::clone(&self.nvml), Arc::clone(&ended));
        let mut tallies: Vec<_> = self.identities.iter().cloned().map(Tracked::new).collect();
        let opened = Instant::now();
        let sampler = std::thread::Builder::new()
            .name("gpu-sampler".to_owned())
            .spawn(move || {
                loop {
                    for tracked in &mut tallies {
                        tracked.look(&nvml, opened);
                    }
                    if flag.load(Ordering::Acquire) {
                        return tallies.into_iter().map(|t| t.tally).collect();
                    }
                    std::thread::park_timeout(LOOK);
                }
            })
            .map_err(|error| {
                Absent::new(
                    format!("starting the GPU sampler: {error}"),
                    "raise the limit of threads (`ulimit -u`)",
                )
            })?;
        Ok(GpuWindow { ended, sampler })
    }
}

impl GpuWindow {
    /// Takes a last look and gives each GPU's account; empty if the sampler broke down.
    pub fn close(self) -> Vec<GpuSummary> {
        self.ended.store(true, Ordering::Release);
        self.sampler.thread().unpark();
        let tallies = self.sampler.join().unwrap_or_default();
        tallies.iter().map(GpuTally::summary).collect()
    }
}

fn load() -> Result<Nvml, NvmlError> {
    let mut last = None;
    for library in LIBRARIES {
        match Nvml::builder().lib_path(OsStr::new(library)).init() {
            Ok(nvml) => return Ok(nvml),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(NvmlError::NotFound))
}

fn identity(device: &Device<'_>, index: u32) -> GpuIdentity {
    let link = || {
        Some(PcieLink {
            generation: device.current_pcie_link_gen().ok()?,
            max_generation: device.max_pcie_link_gen().ok()?,
            lanes: device.current_pcie_link_width().ok()?,
            max_lanes: device.max_pcie_link_width().ok()?,
        })
    };
    GpuIdentity {
        index,
        name: device.name().ok(),
        uuid: device.uuid().ok(),
        vbios: device.vbios_version().ok(),
        driver: None,
        pci: device.pci_info().ok().map(|pci| pci.bus_id),
        link: link(),
        power_limit_w: device
            .enforced_power_limit()
            .ok()
            .map(|mw| f64::from(mw) / 1000.0),
        max_sm_mhz: device.max_clock_info(Clock::SM).ok(),
        compute_capability: device
            .cuda_compute_capability()
            .ok()
            .map(|c| format!("{}.{}", c.major, c.minor)),
    }
}

struct Tracked {
    index: u32,
    tally: GpuTally,
}

impl Tracked {
    fn new(identity: GpuIdentity) -> Self {
        Self {
            index: identity.index,
            tally: GpuTally::new(identity),
        }
    }

    fn look(&mut self, nvml: &Nvml, opened: Instant) {
        let at_s = opened.elapsed().as_secs_f64();
        let Ok(device) = nvml.device_by_index(self.index) else {
            // A GPU that fell off the bus tells nothing; the account counts it as a failed look.
            self.tally.add(&GpuSample {
                at_s,
                ..GpuSample::default()
            });
            return;
        };
        self.tally.add(&sample(&device, at_s));
        self.tally.add_processes(processes(&device));
    }
}

fn sample(device: &Device<'_>, at_s: f64) -> GpuSample {
    GpuSample {
        at_s,
        sm_mhz: device.clock_info(Clock::SM).ok(),
        memory_mhz: device.clock_info(Clock::Memory).ok(),
        power_mw: device.power_usage().ok(),
        temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
        reasons: device.current_throttle_reasons().ok().map(|r| r.bits()),
        utilisation: device.utilization_rates().ok().map(|u| u.gpu),
        memory_bytes: device.memory_info().ok().map(|m| m.used),
        energy_mj: device.total_energy_consumption().ok(),
        ecc_uncorrected: device
            .total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)
            .ok(),
    }
}

fn processes(device: &Device<'_>) -> Result<Vec<ProcessSample>, Absent> {
    let absent = |error: NvmlError| {
        Absent::new(
            format!("NVML tells no processes: {error}"),
            "run sekimon on the host, outside a container",
        )
    };
    let mut all = device.running_compute_processes().map_err(absent)?;
    // A graphics process takes the same SMs; cards without graphics refuse the question.
    all.extend(device.running_graphics_processes().unwrap_or_default());
    Ok(all
        .into_iter()
        .map(|process| ProcessSample {
            pid: process.pid,
            memory_bytes: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_is_sampled_or_the_absence_says_what_to_do() {
        match GpuWitness::open() {
            Ok(witness) => {
                let window = witness.window().unwrap();
                std::thread::sleep(3 * LOOK);
                let summaries = window.close();
                assert_eq!(summaries.len(), witness.identities().len());
                for gpu in &summaries {
                    assert!(gpu.samples >= 2 && gpu.failed == 0, "{gpu:?}");
                    assert!(gpu.sm_mhz.is_some() && gpu.identity.name.is_some());
                    assert!(gpu.identity.driver.is_some());
                }
            }
            Err(absent) => {
                assert!(absent.why.contains("NVML"), "{absent}");
                assert!(absent.mend.contains("driver"));
            }
        }
    }
}
