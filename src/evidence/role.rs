//! What a process of a seat is for, guessed from its title or command line, and which rank it is.

use serde::{Deserialize, Serialize};

/// What a process of a seat is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Role {
    /// It answers HTTP.
    ApiServer,
    /// It schedules the requests; with one rank it also runs the model.
    EngineCore,
    /// It runs the model for one rank.
    Worker {
        /// Which rank, as far as its title says.
        rank: Rank,
    },
    /// It belongs to the seat but neither answers nor computes (detokenizer, coordinator, resource tracker).
    Aide,
    /// It only forwards the port (`docker-proxy`): the seat itself is in a container behind it.
    Proxy,
    /// Nothing known fits.
    Unknown,
}

/// The coordinates of a rank, each only where the title names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Rank {
    /// Tensor parallel rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<u32>,
    /// Pipeline parallel rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pp: Option<u32>,
    /// Data parallel rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dp: Option<u32>,
    /// Expert parallel rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ep: Option<u32>,
}

/// One sign of a role: a text, where it stands in the command line, and what it stands for.
struct Sign {
    text: &'static str,
    place: Place,
    role: Role,
}

/// Where a sign stands.
enum Place {
    /// At the beginning: a title that the process gave itself. A script that merely names it is no worker.
    Title,
    /// Anywhere: a program or module, behind an interpreter and its options.
    Command,
}

const fn title(text: &'static str, role: Role) -> Sign {
    Sign {
        text,
        place: Place::Title,
        role,
    }
}

const fn sign(text: &'static str, role: Role) -> Sign {
    Sign {
        text,
        place: Place::Command,
        role,
    }
}

impl Sign {
    fn is_in(&self, line: &str) -> bool {
        match self.place {
            Place::Title => line.starts_with(self.text),
            Place::Command => line.contains(self.text),
        }
    }
}

const WORKER: Role = Role::Worker {
    rank: Rank {
        tp: None,
        pp: None,
        dp: None,
        ep: None,
    },
};

/// Signs in the order in which they are tried: titles that a process gives itself first, then what it was started as.
const SIGNS: &[Sign] = &[
    sign("docker-proxy", Role::Proxy),
    sign("rootlessport", Role::Proxy),
    sign("slirp4netns", Role::Proxy),
    sign("pasta.avx2", Role::Proxy),
    sign("kubectl port-forward", Role::Proxy),
    title("VLLM::Worker", WORKER),
    title("VLLM::EngineCore", Role::EngineCore),
    title("VLLM::APIServer", Role::ApiServer),
    title("VLLM::DP", Role::Aide),
    title("sglang::scheduler", WORKER),
    title("sglang::detokenizer", Role::Aide),
    title("sglang::data_parallel_controller", Role::Aide),
    title("sglang::", Role::ApiServer),
    title("ray::RayWorkerWrapper", WORKER),
    sign("multiprocessing.resource_tracker", Role::Aide),
    sign("multiprocessing.forkserver", Role::Aide),
    sign("text-generation-server", WORKER),
    sign("mpi4py.futures.server", WORKER),
    sign("text-generation-launcher", Role::Aide),
    sign("text-generation-router", Role::ApiServer),
    sign("vllm.entrypoints", Role::ApiServer),
    sign("vllm serve", Role::ApiServer),
    sign("sglang.launch_server", Role::ApiServer),
    sign("trtllm-serve", Role::ApiServer),
    sign("lmdeploy serve", Role::ApiServer),
    sign("llama-server", Role::ApiServer),
    sign("mistralrs", Role::ApiServer),
    sign("ollama serve", Role::ApiServer),
];

impl Role {
    /// The role that a command line (or the title that replaced it) suggests.
    pub fn of_command(cmdline: &[String]) -> Self {
        let line = cmdline.join(" ");
        let Some(found) = SIGNS.iter().find(|sign| sign.is_in(&line)) else {
            return Self::Unknown;
        };
        match found.role {
            Self::Worker { .. } => Self::Worker {
                rank: Rank::of_title(&line),
            },
            role => role,
        }
    }

    /// Whether the process runs the model, so that its environment and libraries are those of the path.
    pub fn computes(self) -> bool {
        matches!(self, Self::EngineCore | Self::Worker { .. })
    }
}

impl Rank {
    /// The rank that a title names: the first word's `_TP0`, `_DP1`, … parts (`VLLM::Worker_DP1_TP0_EP3`).
    pub fn of_title(title: &str) -> Self {
        let mut rank = Self::default();
        let word = title.split_whitespace().next().unwrap_or_default();
        for part in word.split('_') {
            let digits = part.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let Ok(number) = digits.parse() else { continue };
            match &part[..part.len() - digits.len()] {
                "TP" => rank.tp = Some(number),
                "PP" => rank.pp = Some(number),
                "DP" => rank.dp = Some(number),
                "EP" => rank.ep = Some(number),
                _ => {}
            }
        }
        rank
    }

    /// Whether the title named nothing, as with a single rank.
    pub fn is_unnamed(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(line: &str) -> Role {
        Role::of_command(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_vllm_worker_title_tells_its_ranks() {
        let Role::Worker { rank } = role("VLLM::Worker_DP1_PP0_TP3_EP11") else {
            panic!("not a worker");
        };
        assert_eq!(
            (rank.dp, rank.pp, rank.tp, rank.ep),
            (Some(1), Some(0), Some(3), Some(11))
        );
    }

    #[test]
    fn sglang_schedulers_are_workers() {
        assert_eq!(
            role("sglang::scheduler_TP2"),
            Role::Worker {
                rank: Rank {
                    tp: Some(2),
                    ..Rank::default()
                }
            }
        );
        assert_eq!(role("sglang::detokenizer"), Role::Aide);
    }

    #[test]
    fn the_usual_commands_are_known() {
        assert_eq!(
            role("/usr/bin/python3 /usr/local/bin/vllm serve m"),
            Role::ApiServer
        );
        assert_eq!(
            role("/opt/llama-server --port 8080 -m x.gguf"),
            Role::ApiServer
        );
        assert_eq!(role("VLLM::EngineCore_DP0"), Role::EngineCore);
        assert_eq!(
            role("/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0"),
            Role::Proxy
        );
        assert_eq!(role("sleep 5"), Role::Unknown);
        assert_eq!(role("pgrep -f VLLM::Worker_TP0"), Role::Unknown);
    }

    #[test]
    fn an_argument_that_looks_like_a_rank_is_not_one() {
        assert!(Rank::of_title("python3 /models/x_TP8").is_unnamed());
    }
}
