//! The gate's life: from its first message to the end of the shim or of the cell.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio_util::task::TaskTracker;

use super::ear::{self, Door, EarError, Heard};
use super::forward::{self, Inward, errno_of};
use super::link::NAMESERVER;
use super::log::Log;
use super::names::Names;
use super::outside::{Outside, RESOLVING_MAX};
use super::rules::{PORTS_MAX, Rules};
use super::splice::reset;
use super::wire::{FromGate, Step, ToGate};
use super::{answer, carry, dns};
use crate::proto::{decode, encode};
use crate::sys::packet::{self, PACKET_BYTES, Patience};
use crate::sys::{reactor, role, signals};

/// The gate's name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-gate";
/// Connections carried out at a time; further ones wait in the kernel's queues.
const CONNECTIONS_MAX: usize = 512;
/// Connections that ask for names at a time; further ones are reset.
const NAME_CONNECTIONS_MAX: usize = 32;
/// Descriptors beside those of connections: listeners, forwards and what comes in by them,
/// the runtime's own.
const OTHER_DESCRIPTORS: usize = 2 * PORTS_MAX + 512;
/// The least connections worth having.
const CONNECTIONS_MIN: usize = 8;
/// How long accepting rests when the kernel has no descriptor or memory left, in milliseconds.
const REST_MS: u64 = 100;

/// What every task of the gate shares.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) rules: Rules,
    pub(super) names: RefCell<Names>,
    pub(super) log: Log,
    pub(super) outside: Outside,
    pub(super) inward: Inward,
    pub(super) tasks: TaskTracker,
    places: Arc<Semaphore>,
    name_places: Arc<Semaphore>,
}

/// The gate's whole life: called first thing in `main`, before any thread, when the only
/// argument is [`GATE_ARGUMENT`](super::GATE_ARGUMENT). Descriptor 0 is a sequenced-packet
/// socket to the shim, descriptor 1 a pidfd of the cell's warden; the end of either is the
/// gate's.
pub fn gate_main() -> ! {
    gate_main_with(Outside::host())
}

/// The same with another world outside: for tests, which only talk to their own machine.
pub fn gate_main_with(outside: Outside) -> ! {
    role::set_name(NAME);
    signals::begin_role();
    // Out of the session of whoever started us; unreadable to others of the same user.
    let _leader_already = rustix::process::setsid();
    let _stays = rustix::process::chdir(c"/");
    let _hidden = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _lowered = rustix::thread::set_no_new_privs(true);
    let status = match role::take_start_descriptors() {
        Ok((control, warden)) => match begin(control, warden, outside) {
            Ok(()) => 0,
            Err(errno) => errno.raw_os_error(),
        },
        Err(errno) => errno.raw_os_error(),
    };
    // Not through the runtime's end: it would wait for a resolver that does not answer.
    role::leave(status)
}

fn begin(mut control: OwnedFd, warden: OwnedFd, outside: Outside) -> Result<(), Errno> {
    let Begun { rules, log, spaces } = first_messages(&control)?;
    let door = match &spaces {
        Some([user, network]) => Door::Spaces(user.as_fd(), network.as_fd()),
        None => Door::Warden(warden.as_fd()),
    };
    let heard = ear::fork(door, &rules, &mut control);
    drop(spaces);
    let heard = heard.inspect_err(|&EarError { step, errno }| {
        let errno = errno.raw_os_error();
        say(&control, &FromGate::Failed { step, errno }, None);
    });
    let heard = heard.map_err(|error| error.errno)?;
    let served = serve(Start {
        rules,
        log: Log::new(log),
        outside,
        heard,
        control: &control,
        warden,
    });
    served.map_err(|error| {
        let errno = errno_of(&error);
        let step = Step::Serve;
        let failed = FromGate::Failed {
            step,
            errno: errno.raw_os_error(),
        };
        say(&control, &failed, None);
        errno
    })
}

/// What the shim says first.
struct Begun {
    rules: Rules,
    log: Option<OwnedFd>,
    spaces: Option<[OwnedFd; 2]>,
}

fn first_messages(control: &OwnedFd) -> Result<Begun, Errno> {
    let mut buffer = vec![0; PACKET_BYTES];
    let mut next = || {
        let packet = packet::receive(control, &mut buffer, Patience::Wait)?;
        let message = decode(&buffer[..packet.len]).map_err(|_| Errno::PROTO)?;
        Ok::<_, Errno>((message, packet.descriptor))
    };
    let (ToGate::Begin { rules, spaces }, log) = next()? else {
        return Err(Errno::PROTO);
    };
    let mut space = || {
        let (ToGate::Space, Some(space)) = next()? else {
            return Err(Errno::PROTO);
        };
        Ok(space)
    };
    Ok(Begun {
        rules: Rules::new(rules.into_iter().map(Into::into).collect()),
        log,
        spaces: match spaces {
            true => Some([space()?, space()?]),
            false => None,
        },
    })
}

/// Raises the soft limit of descriptors; says how many connections fit below it.
fn connections() -> usize {
    let wanted = u64::try_from(2 * CONNECTIONS_MAX + OTHER_DESCRIPTORS).unwrap_or(u64::MAX);
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let current = limit.maximum.unwrap_or(wanted).min(wanted);
    limit.current = Some(limit.current.unwrap_or(wanted).max(current));
    let Rlimit {
        current: raised, ..
    } = limit;
    let _raised = rustix::process::setrlimit(Resource::Nofile, limit);
    let have = usize::try_from(raised.unwrap_or(0)).unwrap_or(usize::MAX);
    let fit = have.saturating_sub(OTHER_DESCRIPTORS) / 2;
    fit.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

struct Start<'a> {
    rules: Rules,
    log: Log,
    outside: Outside,
    heard: Heard,
    control: &'a OwnedFd,
    warden: OwnedFd,
}

fn serve(start: Start<'_>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVING_MAX)
        .thread_name("ostler-resolve")
        .build()?;
    let served = LocalSet::new().block_on(&runtime, run(start));
    // As in `gate_main_with`.
    runtime.shutdown_background();
    served
}

async fn run(start: Start<'_>) -> io::Result<()> {
    let control = reactor::register(start.control.try_clone()?, Interest::READABLE)?;
    let warden = reactor::register(start.warden, Interest::READABLE)?;
    let gate = Rc::new(Gate {
        rules: start.rules,
        names: RefCell::default(),
        log: start.log,
        outside: start.outside,
        inward: Inward::new(start.heard.ear)?,
        tasks: TaskTracker::new(),
        places: Arc::new(Semaphore::new(connections())),
        name_places: Arc::new(Semaphore::new(NAME_CONNECTIONS_MAX)),
    });
    if let Some(names) = start.heard.names {
        let socket = UdpSocket::from_std(names.into())?;
        gate.tasks
            .spawn_local(answer::over_udp(Rc::clone(&gate), socket));
    }
    for listener in start.heard.listeners {
        let listener = TcpListener::from_std(listener.into())?;
        gate.tasks.spawn_local(accept(Rc::clone(&gate), listener));
    }
    say(control.get_ref(), &FromGate::Ready, None);
    loop {
        tokio::select! {
            ready = control.readable() => {
                if !heed(&gate, control.get_ref()) {
                    break;
                }
                ready?.clear_ready();
            }
            _ended = warden.readable() => break,
        }
    }
    gate.log.finish();
    Ok(())
}

/// Everything the shim has said by now; false when it is gone.
fn heed(gate: &Rc<Gate>, control: &OwnedFd) -> bool {
    let mut buffer = [0; super::link::MESSAGE_BYTES];
    loop {
        match packet::receive(control, &mut buffer, Patience::Now) {
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
            Ok(packet) if packet.len == 0 => return false,
            Ok(packet) => {
                let (Ok(asked), Ok(back)) = (decode(&buffer[..packet.len]), control.try_clone())
                else {
                    continue;
                };
                obey(gate, asked, back);
            }
        }
    }
}

fn obey(gate: &Rc<Gate>, asked: ToGate, back: OwnedFd) {
    let task = Rc::clone(gate);
    match asked {
        ToGate::Begin { .. } | ToGate::Space => {}
        ToGate::Unforward { host_port } => gate.inward.unforward(host_port),
        ToGate::Count { serial } => {
            let counts = gate.log.counts();
            say(&back, &FromGate::Counted { serial, counts }, None);
        }
        ToGate::Connect { serial, port } => {
            gate.tasks.spawn_local(async move {
                let connected = task.inward.connect(port).await.and_then(|stream| {
                    let socket = stream.into_std().map_err(|error| errno_of(&error))?;
                    Ok(OwnedFd::from(socket))
                });
                match connected {
                    Ok(socket) => say(&back, &FromGate::Connected { serial }, Some(&socket)),
                    Err(errno) => refuse(&back, serial, errno),
                }
            });
        }
        ToGate::Forward {
            serial,
            host_port,
            inside_port,
        } => {
            gate.tasks.spawn_local(async move {
                match forward::forward(&task, host_port, inside_port).await {
                    Ok(host_port) => say(&back, &FromGate::Forwarding { serial, host_port }, None),
                    Err(errno) => refuse(&back, serial, errno),
                }
            });
        }
    }
}

fn refuse(back: &OwnedFd, serial: u32, errno: Errno) {
    let errno = errno.raw_os_error();
    say(back, &FromGate::Refused { serial, errno }, None);
}

/// Tells the shim; one that does not read goes without.
fn say(control: &OwnedFd, message: &FromGate, socket: Option<&OwnedFd>) {
    if let Ok(bytes) = encode(message) {
        let _sent = packet::send(control.as_fd(), &bytes, socket.map(AsFd::as_fd));
    }
}

impl Gate {
    /// The next connection; none after an error, and then not at once.
    pub(super) async fn accept(&self, listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
        match listener.accept().await {
            Ok(accepted) => Some(accepted),
            Err(_) => {
                let rest = tokio::time::Instant::now() + Duration::from_millis(REST_MS);
                tokio::time::sleep_until(rest).await;
                None
            }
        }
    }
}

/// Takes what arrives at one port of the antechamber.
async fn accept(gate: Rc<Gate>, listener: TcpListener) {
    loop {
        let Some((stream, _)) = gate.accept(&listener).await else {
            continue;
        };
        let Ok(wanted) = stream.local_addr() else {
            continue;
        };
        let task = Rc::clone(&gate);
        if wanted == SocketAddr::from((NAMESERVER, dns::PORT)) {
            match Arc::clone(&gate.name_places).try_acquire_owned() {
                Ok(place) => {
                    gate.tasks.spawn_local(async move {
                        let _place = place;
                        answer::over_tcp(task, stream).await;
                    });
                }
                Err(_) => reset(&stream),
            }
            continue;
        }
        // One connection per port waits here; the others wait in the kernel.
        let Ok(place) = Arc::clone(&gate.places).acquire_owned().await else {
            return;
        };
        gate.tasks.spawn_local(async move {
            let _place = place;
            carry::carry(task, stream, wanted).await;
        });
    }
}
