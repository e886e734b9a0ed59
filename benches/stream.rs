//! What reading costs: CPU seconds of the client for a million SSE chunks, beside the least that any client pays; and
//! time and memory for the prompt logprobs of a long prompt.
//!
//! `cargo bench --bench stream [-- CHUNKS]`. The server is a child process, so that its cost is not counted. The minimal
//! reader takes the bytes of the same HTTP client and counts `data:`; the two are measured in turn, on one thread.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use sekimon::dialect::{PromptLogprobs, named};
use sekimon::drive::cancel::Cancel;
use sekimon::drive::client::{Client, ClientOptions};
use sekimon::drive::fetch::{Deadlines, Line};
use sekimon::drive::load::{Assignment, drive};
use sekimon::drive::prompt_logprobs::{Scoring, score};
use sekimon::drive::request::{Cache, Prompt, Request};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const STREAMS: u32 = 64;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if arguments.iter().any(|a| a == "--serve") {
        return runtime.block_on(serve());
    }
    let chunks = arguments.iter().find_map(|a| a.parse::<u32>().ok());
    let chunks = chunks.unwrap_or(1_000_000);
    let mut server = Command::new(std::env::current_exe()?)
        .arg("--serve")
        .stdout(Stdio::piped())
        .spawn()?;
    let result = url_of(&mut server).and_then(|url| runtime.block_on(measure(&url, chunks)));
    server.kill()?;
    server.wait()?;
    result
}

fn url_of(server: &mut Child) -> Fallible<String> {
    let stdout = server.stdout.take().ok_or("no stdout")?;
    let mut url = String::new();
    BufReader::new(stdout).read_line(&mut url)?;
    Ok(url.trim().to_owned())
}

async fn measure(url: &str, chunks: u32) -> Fallible<()> {
    let mut out = std::io::stdout();
    let begun = Instant::now();
    let client = Client::new(ClientOptions::new(url))?;
    let start_ms = begun.elapsed().as_secs_f64() * 1e3;
    writeln!(out, "client start: {start_ms:.1} ms")?;
    for model in [
        "plain-1", "plain-8", "plain-32", "usage-1", "usage-8", "usage-32",
    ] {
        let (mut least, mut ours) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            least = least.min(minimal(url, model, chunks).await?);
            ours = ours.min(full(&client, model, chunks).await?);
        }
        writeln!(
            out,
            "{model}: {STREAMS} streams, CPU s per million chunks: minimal {least:.3}, sekimon {ours:.3}, ratio {:.2}",
            ours / least
        )?;
    }
    writeln!(out, "peak memory after streams: {}", peak()?)?;
    scores(&client, &mut out).await
}

/// CPU seconds of this thread.
fn cpu_s() -> Fallible<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().ok_or("empty")?.parse()?;
    Ok(nanoseconds / 1e9)
}

fn peak() -> Fallible<String> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|l| l.starts_with("VmHWM"));
    Ok(line
        .ok_or("no VmHWM")?
        .replace("VmHWM:", "")
        .trim()
        .to_owned())
}

async fn minimal(url: &str, model: &str, chunks: u32) -> Fallible<f64> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let each = chunks / STREAMS;
    let body = format!("{{\"model\":\"{model}\",\"max_tokens\":{each},\"stream\":true}}");
    let before = cpu_s()?;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..STREAMS {
        let request = http.post(format!("{url}/v1/completions"));
        let request = request.body(body.clone());
        tasks.spawn(async move {
            let mut bytes = request.send().await?.bytes_stream();
            let finder = memchr::memmem::Finder::new(b"data:");
            let mut seen = 0;
            while let Some(piece) = bytes.next().await {
                seen += finder.find_iter(&piece?).count();
            }
            Ok::<usize, reqwest::Error>(seen)
        });
    }
    let mut seen = 0;
    while let Some(task) = tasks.join_next().await {
        seen += task??;
    }
    let spent = cpu_s()? - before;
    Ok(spent * 1e6 / seen as f64)
}

async fn full(client: &Client, model: &str, chunks: u32) -> Fallible<f64> {
    let dialect = named("vllm").ok_or("no dialect")?;
    let deadlines = Deadlines::of(dialect, Duration::from_secs(60));
    let line = Line::new(client.clone(), model, dialect, deadlines);
    let request = Request::new("bench", Prompt::Text("x".into()), chunks / STREAMS);
    let before = cpu_s()?;
    let assignment = Assignment::Shared {
        streams: STREAMS,
        requests: vec![request; STREAMS as usize],
    };
    let exchanges = drive(&line, assignment, 0, &Cancel::never(), |_| {}).await;
    let spent = cpu_s()? - before;
    if let Some(bad) = exchanges.iter().find(|e| !e.is_complete()) {
        return Err(format!("{:?}", bad.outcome).into());
    }
    let seen: u64 = exchanges.iter().map(|e| u64::from(e.token_chunks)).sum();
    Ok(spent * 1e6 / seen as f64)
}

async fn scores(client: &Client, out: &mut impl Write) -> Fallible<()> {
    let ids: Arc<[u32]> = (0..166_000).map(|i| i % 50_000 + 100).collect();
    let scoring = Scoring {
        client: client.clone(),
        model: "scores".to_owned(),
        dialect: named("vllm").ok_or("no dialect")?,
        route: PromptLogprobs::Vllm,
        top: 20,
        deadline: Duration::from_secs(60),
        stall: Duration::from_secs(60),
    };
    let (begun, before) = (Instant::now(), cpu_s()?);
    let scores = score(&scoring, &ids, &Cache::Allowed, &Cancel::never()).await?;
    writeln!(
        out,
        "scores: {} tokens with 20 logprobs each, {} MB, {:.2} s, CPU {:.2} s, peak memory {}",
        scores.tokens.len() + 1,
        scores.body_bytes / 1_000_000,
        begun.elapsed().as_secs_f64(),
        cpu_s()? - before,
        peak()?
    )?;
    Ok(())
}

async fn serve() -> Fallible<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{}", listener.local_addr()?)?;
    stdout.flush()?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(connection(socket));
    }
}

async fn connection(mut socket: TcpStream) {
    while let Some(body) = request(&mut socket).await {
        let model = body.get("model").and_then(Value::as_str).unwrap_or("");
        let chunks = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(1);
        let sent = match model.split_once('-') {
            Some((shape, batch)) => {
                let batch = batch.parse().unwrap_or(1);
                stream(&mut socket, shape, chunks, batch).await
            }
            None => long_scores(&mut socket, &body).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn request(socket: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n")
            && let Ok(json) = serde_json::from_slice(&bytes[end + 4..])
        {
            return Some(json);
        }
        match socket.read(&mut buffer).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: ";

/// Events as vLLM's chat sends them, one HTTP chunk each, `batch` of them in one write.
async fn stream(
    socket: &mut TcpStream,
    shape: &str,
    chunks: u64,
    batch: u64,
) -> std::io::Result<()> {
    let head = format!("{HEAD}text/event-stream\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    let mut bytes = Vec::new();
    for i in 0..chunks {
        put(&mut bytes, &event(shape, i));
        if (i + 1) % batch == 0 {
            socket.write_all(&bytes).await?;
            bytes.clear();
            // The next stream's turn, as an engine's step serves one after the other.
            tokio::task::yield_now().await;
        }
    }
    let finish = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"length"}],"#;
    let usage = format!(r#""usage":{{"prompt_tokens":44,"completion_tokens":{chunks}}}}}"#);
    put(&mut bytes, &format!("data: {finish}{usage}\n\n"));
    put(&mut bytes, "data: [DONE]\n\n");
    bytes.extend_from_slice(b"0\r\n\r\n");
    socket.write_all(&bytes).await
}

fn event(shape: &str, i: u64) -> String {
    let words = [" the", "return", "\\n", " ", "こん", "(", "self", ","];
    let word = words[i as usize % words.len()];
    let created = 1_796_103_949 + i / 100;
    let tail = match shape {
        "usage" => format!(
            r#""token_ids":[{}]}}],"usage":{{"prompt_tokens":44,"total_tokens":{},"completion_tokens":{}}}}}"#,
            i * 7919 % 50_000,
            i + 45,
            i + 1
        ),
        _ => r#""token_ids":null}]}"#.to_owned(),
    };
    format!(
        "data: {{\"id\":\"chatcmpl-a996234976df6463\",\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":\"smollm2-135m\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\"finish_reason\":null,{tail}\n\n"
    )
}

fn put(bytes: &mut Vec<u8>, event: &str) {
    bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
}

async fn long_scores(socket: &mut TcpStream, body: &Value) -> std::io::Result<()> {
    let head = format!("{HEAD}application/json\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    let empty = Vec::new();
    let ids = body.get("prompt").and_then(Value::as_array);
    let ids = ids.unwrap_or(&empty);
    let mut bytes = Vec::new();
    put(
        &mut bytes,
        r#"{"choices":[{"text":"x","prompt_logprobs":[null"#,
    );
    for (i, id) in ids.iter().enumerate().skip(1) {
        let mut position = format!(
            r#",{{"{id}":{{"logprob":-{}.399277687072754,"rank":14055,"decoded_token":" quick"}}"#,
            i % 20
        );
        for other in 0..20 {
            let _ = write!(
                position,
                r#","{}":{{"logprob":-0.83677738904953,"rank":{other},"decoded_token":" brown"}}"#,
                60_000 + other
            );
        }
        position.push('}');
        put(&mut bytes, &position);
        if bytes.len() > 65536 {
            socket.write_all(&bytes).await?;
            bytes.clear();
        }
    }
    let usage = format!(
        r#"]}}],"usage":{{"prompt_tokens":{},"completion_tokens":1}}}}"#,
        ids.len()
    );
    put(&mut bytes, &usage);
    bytes.extend_from_slice(b"0\r\n\r\n");
    socket.write_all(&bytes).await
}
