//! From samples to the summary of one GPU, in bounded memory, live or from a recording.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::absence::{Absent, Sighting};
use super::gpu::{GpuIdentity, GpuProcess, GpuSample, GpuSummary, Histogram, IDLE, ReasonCount};

/// Processes kept of one GPU; a GPU that is shared by more is foreign enough.
const PROCESS_LIMIT: usize = 1024;

/// A process in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSample {
    /// Process id in the host's namespace.
    pub pid: u32,
    /// Device memory in bytes; absent if the driver does not tell.
    pub memory_bytes: Option<u64>,
}

/// The running account of one GPU.
#[derive(Debug, Clone)]
pub struct GpuTally {
    identity: GpuIdentity,
    samples: u64,
    failed: u64,
    first_s: Option<f64>,
    last_s: f64,
    largest_gap_s: f64,
    sm: Histogram,
    busy_sm: Histogram,
    memory: Histogram,
    power: Histogram,
    temperature: Histogram,
    utilisation: Histogram,
    memory_bytes: Option<u64>,
    reasons: Option<BTreeMap<u64, u64>>,
    energy_mj: Ends,
    ecc: Ends,
    processes: Result<BTreeMap<u32, GpuProcess>, Absent>,
}

/// First and last value of a count that only grows.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    first: Option<u64>,
    last: Option<u64>,
}

impl Ends {
    fn add(&mut self, value: Option<u64>) {
        self.first = self.first.or(value);
        self.last = value.or(self.last);
    }

    /// The growth; absent without a value, or if the count fell (a reset).
    fn growth(self) -> Option<u64> {
        self.last?.checked_sub(self.first?)
    }
}

impl GpuTally {
    /// An account without samples.
    pub fn new(identity: GpuIdentity) -> Self {
        Self {
            identity,
            samples: 0,
            failed: 0,
            first_s: None,
            last_s: 0.0,
            largest_gap_s: 0.0,
            sm: Histogram::default(),
            busy_sm: Histogram::default(),
            memory: Histogram::default(),
            power: Histogram::default(),
            temperature: Histogram::default(),
            utilisation: Histogram::default(),
            memory_bytes: None,
            reasons: None,
            energy_mj: Ends::default(),
            ecc: Ends::default(),
            processes: Ok(BTreeMap::new()),
        }
    }

    /// Takes one sample.
    pub fn add(&mut self, sample: &GpuSample) {
        self.samples += 1;
        if self.first_s.is_some() {
            self.largest_gap_s = self.largest_gap_s.max(sample.at_s - self.last_s);
        }
        self.first_s = self.first_s.or(Some(sample.at_s));
        self.last_s = sample.at_s;
        let silent = GpuSample {
            at_s: sample.at_s,
            ..GpuSample::default()
        };
        self.failed += u64::from(*sample == silent);
        self.sm.add(sample.sm_mhz);
        if is_busy(sample) {
            self.busy_sm.add(sample.sm_mhz);
        }
        self.memory.add(sample.memory_mhz);
        // A tenth of a watt is finer than the sensor and keeps the distinct values few.
        self.power.add(sample.power_mw.map(|mw| mw / 100));
        self.temperature.add(sample.temperature_c);
        self.utilisation.add(sample.utilisation);
        self.memory_bytes = self.memory_bytes.max(sample.memory_bytes);
        self.energy_mj.add(sample.energy_mj);
        self.ecc.add(sample.ecc_uncorrected);
        if let Some(reasons) = sample.reasons {
            let counts = self.reasons.get_or_insert_default();
            for bit in (0..64).map(|n| 1u64 << n).filter(|bit| reasons & bit != 0) {
                *counts.entry(bit).or_default() += 1;
            }
        }
    }

    /// Takes the processes of one sample; one absence makes the whole list absent, because a foreign process may have been there.
    pub fn add_processes(&mut self, seen: Result<Vec<ProcessSample>, Absent>) {
        match (seen, &mut self.processes) {
            (Ok(seen), Ok(known)) => {
                for process in seen {
                    if known.len() >= PROCESS_LIMIT && !known.contains_key(&process.pid) {
                        continue;
                    }
                    let entry = known.entry(process.pid).or_insert(GpuProcess {
                        pid: process.pid,
                        memory_bytes: None,
                        samples: 0,
                    });
                    entry.samples += 1;
                    entry.memory_bytes = entry.memory_bytes.max(process.memory_bytes);
                }
            }
            (Err(absent), Ok(_)) => self.processes = Err(absent),
            (_, Err(_)) => {}
        }
    }

    /// The account so far.
    pub fn summary(&self) -> GpuSummary {
        let reasons = self.reasons.as_ref().map(|counts| {
            let count = |(bit, samples): (&u64, &u64)| ReasonCount {
                bit: *bit,
                samples: *samples,
            };
            counts.iter().map(count).collect()
        });
        GpuSummary {
            identity: self.identity.clone(),
            samples: self.samples,
            failed: self.failed,
            seconds: self.first_s.map_or(0.0, |first| self.last_s - first),
            largest_gap_s: self.largest_gap_s,
            sm_mhz: self.sm.spread(1.0),
            busy_clocks: self.busy_sm.clocks(),
            memory_mhz: self.memory.spread(1.0),
            power_w: self.power.spread(0.1),
            temperature_c: self.temperature.spread(1.0),
            utilisation: self.utilisation.spread(1.0),
            memory_bytes: self.memory_bytes,
            reasons,
            energy_j: self.energy_mj.growth().map(|mj| mj as f64 / 1000.0),
            ecc_uncorrected: self.ecc.growth(),
            processes: self
                .processes
                .clone()
                .map(|known| known.into_values().collect())
                .into(),
        }
    }
}

/// Whether the GPU worked: by its own idle bit, else by its utilisation.
fn is_busy(sample: &GpuSample) -> bool {
    match (sample.reasons, sample.utilisation) {
        (Some(reasons), _) => reasons & IDLE == 0,
        (None, Some(utilisation)) => utilisation > 0,
        (None, None) => false,
    }
}

#[derive(Deserialize)]
struct Recording {
    info: RecordedInfo,
    samples: Vec<RecordedSample>,
}

#[derive(Deserialize)]
struct RecordedInfo {
    #[serde(rename = "nvmlDeviceGetName")]
    name: Option<String>,
    #[serde(rename = "nvmlDeviceGetVbiosVersion")]
    vbios: Option<String>,
    #[serde(rename = "nvmlDeviceGetEnforcedPowerLimit")]
    power_limit_mw: Option<String>,
    driver: Option<String>,
    max_sm: Option<u32>,
}

#[derive(Deserialize)]
struct RecordedSample {
    t: f64,
    sm_mhz: Option<u32>,
    mem_mhz: Option<u32>,
    power_mw: Option<u32>,
    temp_c: Option<u32>,
    reasons: Option<u64>,
    util: Option<u32>,
    used: Option<u64>,
    energy_mj: Option<u64>,
    #[serde(default)]
    procs: Vec<RecordedProcess>,
}

#[derive(Deserialize)]
struct RecordedProcess {
    pid: u32,
    used: Option<u64>,
}

/// The summary of a recording: a JSON object with `info` and `samples`, so that judging can be tested without a GPU.
pub fn replay(text: &str) -> Sighting<GpuSummary> {
    let recording: Recording = match serde_json::from_str(text) {
        Ok(recording) => recording,
        Err(error) => {
            return Sighting::absent(
                format!("the recording cannot be read: {error}"),
                "record it again: an object with `info` and `samples`",
            );
        }
    };
    let info = recording.info;
    let mut tally = GpuTally::new(GpuIdentity {
        name: info.name,
        vbios: info.vbios,
        driver: info.driver,
        max_sm_mhz: info.max_sm,
        power_limit_w: info
            .power_limit_mw
            .and_then(|mw| mw.parse::<f64>().ok())
            .map(|mw| mw / 1000.0),
        ..GpuIdentity::default()
    });
    let first = recording.samples.first().map_or(0.0, |s| s.t);
    for sample in recording.samples {
        tally.add(&GpuSample {
            at_s: sample.t - first,
            sm_mhz: sample.sm_mhz,
            memory_mhz: sample.mem_mhz,
            power_mw: sample.power_mw,
            temperature_c: sample.temp_c,
            reasons: sample.reasons,
            utilisation: sample.util,
            memory_bytes: sample.used,
            energy_mj: sample.energy_mj,
            ecc_uncorrected: None,
        });
        let processes = sample.procs.iter().map(|p| ProcessSample {
            pid: p.pid,
            memory_bytes: p.used,
        });
        tally.add_processes(Ok(processes.collect()));
    }
    Sighting::Seen {
        value: tally.summary(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpu::ThrottleWeight;
    use super::*;

    const RECORDING: &str = include_str!("../../fixtures/gpu/nvml.json");

    fn recorded() -> GpuSummary {
        replay(RECORDING).into_result().unwrap()
    }

    fn tally(samples: &[GpuSample]) -> GpuSummary {
        let mut tally = GpuTally::new(GpuIdentity::default());
        samples.iter().for_each(|sample| tally.add(sample));
        tally.summary()
    }

    fn busy(sm_mhz: u32, reasons: u64) -> GpuSample {
        GpuSample {
            sm_mhz: Some(sm_mhz),
            reasons: Some(reasons),
            ..GpuSample::default()
        }
    }

    #[test]
    fn a_real_recording_is_summed_up() {
        let gpu = recorded();
        assert_eq!(gpu.identity.name.as_deref(), Some("NVIDIA H200"));
        assert_eq!((gpu.samples, gpu.failed), (499, 0));
        let (sm, power) = (gpu.sm_mhz.unwrap(), gpu.power_w.unwrap());
        assert_eq!((sm.min, sm.max, sm.samples), (345.0, 1980.0, 499));
        // 8192³ products take the card to its limit of 700 W, which it may overshoot for a moment.
        assert!(power.min > 70.0 && power.max > 600.0 && power.median < power.max);
        assert!(gpu.energy_j.unwrap() > 0.0);
        assert!(gpu.largest_gap_s > 0.0 && gpu.seconds > 20.0);
    }

    #[test]
    fn idle_clocks_do_not_miss_a_floor_and_busy_ones_do() {
        let floor = recorded().clock_floor(1000).into_result().unwrap();
        assert!(floor.of > 0 && floor.of < 499);
        let missed = tally(&[busy(1980, 0), busy(900, 0), busy(345, IDLE)]);
        let floor = missed.clock_floor(1500).into_result().unwrap();
        assert_eq!((floor.below, floor.of, floor.lowest_mhz), (1, 2, 900));
        assert!(tally(&[busy(345, IDLE)]).clock_floor(1500).seen().is_none());
    }

    #[test]
    fn thermal_slowdown_disturbs_and_the_power_cap_is_recorded() {
        let gpu = tally(&[busy(1980, 0x4), busy(1200, 0x4 | 0x40), busy(1980, 0)]);
        let throttles = gpu.throttles().into_result().unwrap();
        let told: Vec<_> = throttles
            .iter()
            .map(|t| (t.to_string(), t.weight))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "software power cap in 2 of 3 samples".to_owned(),
                    ThrottleWeight::Recorded
                ),
                (
                    "hardware thermal slowdown in 1 of 3 samples".to_owned(),
                    ThrottleWeight::Disturbs
                ),
            ]
        );
        let real = recorded().throttles().into_result().unwrap();
        assert!(
            matches!(&real[..], [cap] if cap.weight == ThrottleWeight::Recorded && cap.samples == 124)
        );
        assert!(
            tally(&[GpuSample::default()]).throttles().seen().is_none(),
            "not told is not none"
        );
    }

    #[test]
    fn a_process_that_is_not_ours_is_foreign() {
        let mut account = GpuTally::new(GpuIdentity::default());
        let process = |pid, memory| ProcessSample {
            pid,
            memory_bytes: Some(memory),
        };
        account.add_processes(Ok(vec![process(7, 10)]));
        account.add_processes(Ok(vec![process(7, 30), process(9, 5)]));
        let gpu = account.summary();
        let foreign = gpu.foreign_processes(&[7]).into_result().unwrap();
        assert_eq!(
            (foreign.len(), foreign[0].pid, foreign[0].samples),
            (1, 9, 1)
        );
        assert!(gpu.runs_any_of(&[7]) && !gpu.runs_any_of(&[8]));
        account.add_processes(Err(Absent::new("no permission", "run on the host")));
        assert!(account.summary().foreign_processes(&[7]).seen().is_none());
    }

    #[test]
    fn a_gpu_that_tells_nothing_is_counted_as_failed() {
        let silent = tally(&[GpuSample::default(), busy(100, 0)]);
        assert_eq!((silent.samples, silent.failed), (2, 1));
        assert_eq!(silent.power_w, None);
    }

    #[test]
    fn the_median_is_a_value_that_was_seen() {
        let gpu = tally(&[busy(3, 0), busy(1, 0), busy(2, 0), busy(9, 0)]);
        assert_eq!(gpu.sm_mhz.unwrap().median, 2.0);
    }

    #[test]
    fn a_damaged_recording_is_an_absence() {
        assert!(replay("{}").seen().is_none());
    }
}
