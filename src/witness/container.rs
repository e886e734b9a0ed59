//! Docker and podman over the engine's Unix socket: what a container is, and its log.

use std::path::{Path, PathBuf};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::models::{ContainerInspectResponse, MountPoint};
use bollard::query_parameters::{InspectContainerOptions, LogsOptionsBuilder};
use futures_util::{Stream, StreamExt};

use super::bounded;
use super::log_source::Start;
use super::processes::RIGHTS;
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::container::{Container, ContainerMount, LogDriver, Run, container_id};
use crate::evidence::mounts::Access;
use crate::evidence::redaction::{EnvVar, redact_arguments};

/// Seconds that an engine may take to begin an answer; a healthy one takes milliseconds, a busy host some seconds.
const ANSWER_S: u64 = 20;

/// Bytes of a control group file that are read; it has a line a controller.
const CGROUP_BYTES: u64 = 64 * 1024;

/// What to do when no engine answers.
const ENGINE_CURE: &str = "start docker or podman's service (`systemctl --user start podman.socket`), join the group of its socket, \
     or name the socket in `DOCKER_HOST=unix://…`";

/// A container engine that answers.
#[derive(Debug, Clone)]
pub struct Engine {
    docker: Docker,
    socket: PathBuf,
}

impl Engine {
    /// The first engine of these sockets that answers; absent if none does.
    pub async fn find(sockets: &[PathBuf]) -> Sighting<Self> {
        let mut tried = Vec::new();
        for socket in sockets {
            match Self::connect(socket).await {
                Ok(engine) => return Sighting::Seen { value: engine },
                Err(absent) => tried.push(absent.why),
            }
        }
        Sighting::absent(
            format!("no container engine answers: {}", tried.join("; ")),
            ENGINE_CURE,
        )
    }

    /// The engine behind one socket.
    pub async fn connect(socket: &Path) -> Result<Self, Absent> {
        let absent =
            |cause: String| Absent::new(format!("`{}`: {cause}", socket.display()), ENGINE_CURE);
        if !socket.exists() {
            return Err(absent("no such socket".into()));
        }
        let path = socket.to_string_lossy();
        let docker = Docker::connect_with_socket(&path, ANSWER_S, bollard::API_DEFAULT_VERSION)
            .map_err(|error| absent(error.to_string()))?
            .negotiate_version()
            .await
            .map_err(|error| absent(error.to_string()))?;
        Ok(Self {
            docker,
            socket: socket.to_path_buf(),
        })
    }

    /// What the engine says of a container, by name or id.
    pub async fn inspect(&self, container: &str) -> Sighting<Container> {
        self.docker
            .inspect_container(container, None::<InspectContainerOptions>)
            .await
            .map_err(|error| self.absent(container, &error))
            .and_then(|answer| {
                describe(answer).ok_or_else(|| {
                    Absent::new(
                        format!(
                            "the engine's answer on container `{container}` lacks its id or state"
                        ),
                        "look by hand: `docker inspect`",
                    )
                })
            })
            .into()
    }

    /// The bytes of a container's log, standard output and error in the engine's order, without end while it runs.
    pub(crate) fn log(
        &self,
        container: &str,
        from: Start,
    ) -> impl Stream<Item = Result<bytes::Bytes, String>> + use<> {
        let tail = match from {
            Start::Beginning => "all",
            Start::End => "0",
        };
        let options = LogsOptionsBuilder::new()
            .follow(true)
            .stdout(true)
            .stderr(true)
            .tail(tail)
            .build();
        self.docker
            .logs(container, Some(options))
            .map(|item| match item {
                Ok(
                    LogOutput::StdOut { message }
                    | LogOutput::StdErr { message }
                    | LogOutput::StdIn { message }
                    | LogOutput::Console { message },
                ) => Ok(message),
                Err(error) => Err(error.to_string()),
            })
    }

    fn absent(&self, container: &str, error: &bollard::errors::Error) -> Absent {
        Absent::new(
            format!(
                "container `{container}` at `{}`: {error}",
                self.socket.display()
            ),
            "see its name with `docker ps -a` (or `podman ps -a`)",
        )
    }
}

/// The id of the container that process `pid` belongs to; absent outside one, or if it cannot be told from here.
pub fn of_process(pid: u32) -> Sighting<String> {
    let path = format!("/proc/{pid}/cgroup");
    bounded::read(Path::new(&path), CGROUP_BYTES)
        .map_err(|error| Absent::new(format!("reading `{path}`: {error}"), RIGHTS))
        .and_then(|bytes| {
            container_id(&String::from_utf8_lossy(&bytes)).ok_or_else(|| {
                Absent::new(
                    format!("process {pid} is in no container that can be seen from here"),
                    "run sekimon on the host, or name the container in the gate",
                )
            })
        })
        .into()
}

/// Sockets where an engine usually listens, most likely first. `docker_host` and `runtime_dir` are the variables
/// `DOCKER_HOST` and `XDG_RUNTIME_DIR` of the caller, where set.
pub fn usual_sockets(docker_host: Option<&str>, runtime_dir: Option<&str>) -> Vec<PathBuf> {
    let asked = docker_host.and_then(|host| host.strip_prefix("unix://"));
    let user = |name: &str| runtime_dir.map(|dir| Path::new(dir).join(name));
    asked
        .map(PathBuf::from)
        .into_iter()
        .chain([PathBuf::from("/var/run/docker.sock")])
        .chain(user("docker.sock"))
        .chain([PathBuf::from("/run/podman/podman.sock")])
        .chain(user("podman/podman.sock"))
        .collect()
}

/// The parts of an inspection that are evidence; nothing if it lacks what every engine gives.
fn describe(answer: ContainerInspectResponse) -> Option<Container> {
    let state = answer.state?;
    let config = answer.config.unwrap_or_default();
    let run = if state.running == Some(true) {
        Run::Running {
            pid: u32::try_from(state.pid?).ok()?,
            started: state.started_at?,
        }
    } else {
        Run::Stopped {
            state: state
                .status
                .map_or_else(|| "stopped".to_owned(), |s| s.to_string()),
            exit_code: state.exit_code,
        }
    };
    let log = answer.host_config.and_then(|host| host.log_config);
    Some(Container {
        id: answer.id?,
        name: answer
            .name
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned(),
        image_id: answer.image?,
        image_name: config.image.unwrap_or_default(),
        program: answer.path.unwrap_or_default(),
        arguments: redact_arguments(&answer.args.unwrap_or_default()),
        environment: config
            .env
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| EnvVar::parse(entry))
            .collect(),
        mounts: answer
            .mounts
            .unwrap_or_default()
            .into_iter()
            .map(mount)
            .collect(),
        run,
        restarts: answer.restart_count.and_then(|n| u64::try_from(n).ok()),
        log: log.map_or_else(LogDriver::default, |log| LogDriver {
            name: log.typ.unwrap_or_default(),
            options: log.config.unwrap_or_default().into_iter().collect(),
        }),
    })
}

fn mount(point: MountPoint) -> ContainerMount {
    ContainerMount {
        kind: point.typ.unwrap_or_default(),
        source: point.source.unwrap_or_default(),
        target: point.destination.unwrap_or_default(),
        access: if point.rw == Some(false) {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Body;
    use axum::extract::State;
    use axum::http::{StatusCode, Uri, header};
    use axum::response::{IntoResponse, Response};

    use super::*;
    use crate::evidence::redaction::EnvValue;

    const VERSION: &str = include_str!("../../fixtures/docker/version.json");
    const INSPECT: &str = include_str!("../../fixtures/docker/inspect.json");

    /// The id in the inspection.
    const ID: &str = "4b1d8c2e6a7f4d3c9b0e5f6a7d8c9b0a1f2e3d4c5b6a79880716253443526170";

    /// What the served engine has.
    #[derive(Clone, Default)]
    pub(crate) struct Served {
        /// When the container was last started.
        pub(crate) started: Arc<Mutex<Option<String>>>,
        /// Frames of its log so far.
        pub(crate) frames: Arc<Mutex<Vec<Vec<u8>>>>,
        /// Whether the log has ended.
        pub(crate) ended: Arc<Mutex<bool>>,
    }

    /// One frame as the engine multiplexes them: stream 1 is standard output, 2 standard error.
    pub(crate) fn frame(stream: u8, text: &str) -> Vec<u8> {
        let mut frame = vec![stream, 0, 0, 0];
        frame.extend_from_slice(&(text.len() as u32).to_be_bytes());
        frame.extend_from_slice(text.as_bytes());
        frame
    }

    fn json(text: String) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }

    fn inspect(served: &Served) -> Response {
        let started = served.started.lock().unwrap().clone();
        json(match started {
            Some(started) => INSPECT.replace("2026-09-04T01:00:12.001122Z", &started),
            None => INSPECT.to_owned(),
        })
    }

    fn logs(served: Served, query: &str) -> Response {
        let first = if query.contains("tail=0") {
            served.frames.lock().unwrap().len()
        } else {
            0
        };
        let frames = futures_util::stream::unfold((served, first), |(served, next)| async move {
            loop {
                let frame = served.frames.lock().unwrap().get(next).cloned();
                if let Some(frame) = frame {
                    return Some((Ok::<_, std::io::Error>(frame), (served, next + 1)));
                }
                if *served.ended.lock().unwrap() {
                    return None;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
        Body::from_stream(frames).into_response()
    }

    /// Answers as the engine does, whatever version stands at the front of the path.
    async fn answer(State(served): State<Served>, uri: Uri) -> Response {
        let path = uri.path();
        let container = |end| {
            ["dsv4", ID]
                .iter()
                .any(|c| path.ends_with(&format!("/containers/{c}/{end}")))
        };
        if path.ends_with("/version") {
            json(VERSION.to_owned())
        } else if container("json") {
            inspect(&served)
        } else if container("logs") {
            logs(served, uri.query().unwrap_or_default())
        } else {
            let body = r#"{"message":"No such container"}"#.to_owned();
            (StatusCode::NOT_FOUND, json(body)).into_response()
        }
    }

    /// Serves an engine on a socket in `dir`.
    pub(crate) fn serve(dir: &Path, served: Served) -> PathBuf {
        let socket = dir.join("engine.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let router = Router::new().fallback(answer).with_state(served);
        tokio::spawn(async move { axum::serve(listener, router).await });
        socket
    }

    #[tokio::test]
    async fn a_container_is_described_without_its_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let socket = serve(dir.path(), Served::default());
        let engine = Engine::find(&[dir.path().join("none.sock"), socket])
            .await
            .into_result()
            .unwrap();
        let container = engine.inspect("dsv4").await.into_result().unwrap();
        assert_eq!(container.pid(), Some(18234));
        assert_eq!(container.image_name, "dsv4-dense:2026-09-04");
        assert!(container.image_id.starts_with("sha256:9f1c"));
        assert_eq!(container.mounts.len(), 2);
        assert_eq!(container.mounts[0].access, Access::ReadOnly);
        let token = &container.environment[2];
        assert_eq!(token.name, "HF_TOKEN");
        assert!(matches!(token.value, EnvValue::Redacted { .. }));
        let kept = serde_json::to_string(&container).unwrap();
        assert!(!kept.contains("s3cr3t") && !kept.contains("thisIsNoRealToken"));
    }

    #[tokio::test]
    async fn an_unknown_container_is_an_absence() {
        let dir = tempfile::tempdir().unwrap();
        let socket = serve(dir.path(), Served::default());
        let engine = Engine::connect(&socket).await.unwrap();
        let absent = engine.inspect("other").await.into_result().unwrap_err();
        assert!(absent.why.contains("No such container"), "{absent}");
    }

    #[tokio::test]
    async fn no_engine_at_all_is_an_absence_with_its_cure() {
        let dir = tempfile::tempdir().unwrap();
        let absent = Engine::find(&[dir.path().join("none.sock")])
            .await
            .into_result()
            .unwrap_err();
        assert!(absent.why.contains("none.sock") && absent.mend.contains("podman"));
    }

    #[test]
    fn a_process_outside_any_container_is_told_apart() {
        // The tests themselves may run in a container; a process that is gone is in none.
        let gone = of_process(u32::MAX).into_result().unwrap_err();
        assert!(gone.why.contains("cgroup"), "{gone}");
        if let Sighting::Seen { value } = of_process(std::process::id()) {
            assert_eq!(value.len(), 64);
        }
    }

    #[test]
    fn the_asked_socket_is_tried_first() {
        let sockets = usual_sockets(Some("unix:///x.sock"), Some("/run/user/7"));
        assert_eq!(sockets[0], Path::new("/x.sock"));
        assert!(sockets.contains(&PathBuf::from("/run/user/7/podman/podman.sock")));
    }
}
