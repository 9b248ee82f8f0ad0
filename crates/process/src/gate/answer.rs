//! The name server: says which fake address an allowed name has, over UDP and TCP.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::dns::{self, QUESTION_BYTES, Question, Reply, Wanted};
use super::log::{Decision, Entry};
use super::serve::Gate;
use super::splice::reset;

/// How long a connection for names may stay silent, in milliseconds.
const TCP_IDLE_MS: u64 = 10_000;

/// Answers datagrams as long as the gate lives.
pub(super) async fn over_udp(gate: Rc<Gate>, socket: UdpSocket) {
    let mut buffer = [0; QUESTION_BYTES];
    loop {
        // An error is about an answer sent before (a port that was closed): none of ours.
        let Ok((length, asker)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        if let Some(answer) = answer(&gate, &buffer[..length]) {
            // Whoever does not make room for its answer goes without.
            let _sent = socket.try_send_to(&answer, asker);
        }
    }
}

/// Answers one connection's questions, one after another.
pub(super) async fn over_tcp(gate: Rc<Gate>, mut stream: TcpStream) {
    let idle = Duration::from_millis(TCP_IDLE_MS);
    let mut buffer = [0; QUESTION_BYTES];
    loop {
        let turn = tokio::time::timeout(idle, one_over_tcp(&gate, &mut stream, &mut buffer));
        if !matches!(turn.await, Ok(Some(()))) {
            return reset(&stream);
        }
    }
}

/// One question and its answer; none at the end of the connection, or of our patience.
async fn one_over_tcp(gate: &Gate, stream: &mut TcpStream, buffer: &mut [u8]) -> Option<()> {
    let length = usize::from(stream.read_u16().await.ok()?);
    let question = buffer.get_mut(..length)?;
    stream.read_exact(question).await.ok()?;
    let mut message = vec![0; 2];
    message.extend(answer(gate, question)?);
    let length = u16::try_from(message.len() - 2).ok()?;
    message[..2].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&message).await.ok()
}

fn answer(gate: &Gate, bytes: &[u8]) -> Option<Vec<u8>> {
    match Question::read(bytes) {
        Ok(question) => Some(question.answer(decide(gate, &question))),
        Err(unreadable) => {
            gate.log.count(|counts| counts.names_refused += 1);
            dns::complaint(unreadable)
        }
    }
}

fn decide(gate: &Gate, question: &Question) -> Reply {
    let refuse = |reason| {
        gate.log.decided(&Entry {
            host: &question.name,
            port: None,
            address: None,
            decision: Decision::Refused,
            reason,
        });
        Reply::Prohibited
    };
    let Ok(name) = ostler_model::host::canonical_name(&question.name) else {
        return refuse("not a host name");
    };
    let local = name == "localhost" || name.ends_with(".localhost");
    if !local && !gate.rules.allow_name(&name) {
        return refuse("not in the allow list");
    }
    match question.wanted() {
        Wanted::Other => Reply::Empty,
        Wanted::Address if local => Reply::Address(std::net::Ipv4Addr::LOCALHOST),
        Wanted::Address => match gate.names.borrow_mut().address_of(&name, Instant::now()) {
            Ok(address) => {
                gate.log.count(|counts| counts.names_allowed += 1);
                Reply::Address(address)
            }
            Err(super::names::Full) => {
                gate.log.decided(&Entry {
                    host: &name,
                    port: None,
                    address: None,
                    decision: Decision::Failed,
                    reason: "too many names at a time",
                });
                Reply::Failed
            }
        },
    }
}
