//! The main loop of the egress proxy, from its first message to the end of the shim or of the jail.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ostler_sys::errno::errno_of;
use ostler_sys::seqpacket::{self, PACKET_BYTES, ReceiveMode};
use ostler_sys::{async_fd, process_role, signals};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;
use tokio::io::Interest;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::client::NAMESERVER;
use crate::decision_log::DecisionLog;
use crate::inbound::InboundForwarder;
use crate::netns_helper::{self, NetnsEntry, NetnsHelper, NetnsHelperError};
use crate::protocol::{EgressEvent, EgressRequest, EgressStep, decode, encode};
use crate::proxy::EgressProxy;
use crate::relay::reset;
use crate::rules::EgressRules;
use crate::upstream::{RESOLVING_MAX, Upstream};
use crate::{dns, dns_server, outbound};

/// How long what the command sent may take to be passed on after its end, in milliseconds; less
/// than the shim waits for the end of the proxy.
const DRAIN_TIMEOUT_MS: u64 = 500;
/// The proxy's name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-gate";

/// Runs the proxy process: called first in `main`, before any thread, when the only argument is
/// [`EGRESS_ARGUMENT`](crate::EGRESS_ARGUMENT). Descriptor 0 is a sequenced-packet socket to the
/// shim, descriptor 1 a pidfd of the jail's init; the proxy ends with either, and fails where its network-namespace helper has ended.
pub fn egress_main() -> ! {
    egress_main_with(Upstream::host())
}

/// As [`egress_main`], with another resolver and address policy: for tests, which only connect to
/// their own machine.
pub fn egress_main_with(upstream: Upstream) -> ! {
    process_role::set_name(NAME);
    signals::reset_dispositions();
    // Leaves the session of its parent; becomes unreadable to other processes of the same user.
    let _leader_already = rustix::process::setsid();
    let _stays = rustix::process::chdir(c"/");
    let _hidden = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _lowered = rustix::thread::set_no_new_privs(true);
    let status = match process_role::take_inherited_descriptors() {
        Ok((control, init)) => match start(control, init, upstream) {
            Ok(()) => 0,
            Err(errno) => errno.raw_os_error(),
        },
        Err(errno) => errno.raw_os_error(),
    };
    // Not by dropping the runtime: that would wait for a resolver that does not answer.
    process_role::exit_now(status)
}

fn start(mut control: OwnedFd, init: OwnedFd, upstream: Upstream) -> Result<(), Errno> {
    let EgressSetup {
        rules,
        log,
        namespaces: spaces,
    } = receive_setup(&control)?;
    let entry = match &spaces {
        Some([user, network]) => NetnsEntry::Namespaces(user.as_fd(), network.as_fd()),
        None => NetnsEntry::Init(init.as_fd()),
    };
    let helper = netns_helper::fork(entry, &rules, &mut control);
    drop(spaces);
    let helper = helper.inspect_err(|&NetnsHelperError { step, errno }| {
        let errno = errno.raw_os_error();
        send(&control, &EgressEvent::Failed { step, errno }, None);
    });
    let helper = helper.map_err(|error| error.errno)?;
    let served = serve(ServerConfig {
        rules,
        log: DecisionLog::new(log),
        upstream,
        helper,
        control: &control,
        init,
    });
    served.map_err(|error| {
        let errno = errno_of(&error);
        let step = EgressStep::Serve;
        let failed = EgressEvent::Failed {
            step,
            errno: errno.raw_os_error(),
        };
        send(&control, &failed, None);
        errno
    })
}

/// The first message of the shim.
struct EgressSetup {
    rules: EgressRules,
    log: Option<OwnedFd>,
    namespaces: Option<[OwnedFd; 2]>,
}

fn receive_setup(control: &OwnedFd) -> Result<EgressSetup, Errno> {
    let mut buffer = vec![0; PACKET_BYTES];
    let mut next = || {
        let packet = seqpacket::receive(control, &mut buffer, ReceiveMode::Wait)?;
        let message = decode(&buffer[..packet.len]).map_err(|_| Errno::PROTO)?;
        Ok::<_, Errno>((message, packet.descriptor))
    };
    let (EgressRequest::Setup { rules, namespaces }, log) = next()? else {
        return Err(Errno::PROTO);
    };
    let mut receive_namespace = || {
        let (EgressRequest::Namespace, Some(namespace)) = next()? else {
            return Err(Errno::PROTO);
        };
        Ok(namespace)
    };
    Ok(EgressSetup {
        rules: EgressRules::new(rules.into_iter().map(Into::into).collect()),
        log,
        namespaces: match namespaces {
            true => Some([receive_namespace()?, receive_namespace()?]),
            false => None,
        },
    })
}

struct ServerConfig<'a> {
    rules: EgressRules,
    log: DecisionLog,
    upstream: Upstream,
    helper: NetnsHelper,
    control: &'a OwnedFd,
    init: OwnedFd,
}

fn serve(config: ServerConfig<'_>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVING_MAX)
        .thread_name("ostler-resolve")
        .build()?;
    let served = LocalSet::new().block_on(&runtime, run(config));
    // As in `egress_main_with`.
    runtime.shutdown_background();
    served
}

async fn run(config: ServerConfig<'_>) -> io::Result<()> {
    let control = async_fd::register(config.control.try_clone()?, Interest::READABLE)?;
    let init = async_fd::register(config.init, Interest::READABLE)?;
    let helper = async_fd::register(config.helper.process, Interest::READABLE)?;
    let listeners = config.helper.listeners.len();
    let proxy = EgressProxy::new(config.rules, config.log, config.upstream, listeners);
    let proxy = Rc::new(proxy);
    let inbound = InboundForwarder::new(Rc::clone(&proxy), config.helper.channel)?;
    let inbound = Rc::new(inbound);
    if let Some(dns_socket) = config.helper.dns_socket {
        let socket = UdpSocket::from_std(dns_socket.into())?;
        proxy
            .tasks
            .spawn_local(dns_server::serve_udp(Rc::clone(&proxy), socket));
    }
    for listener in config.helper.listeners {
        let listener = TcpListener::from_std(listener.into())?;
        proxy.tasks.spawn_local(accept(Rc::clone(&proxy), listener));
    }
    send(control.get_ref(), &EgressEvent::Ready, None);
    loop {
        tokio::select! {
            ready = control.readable() => {
                if !handle_messages(&inbound, control.get_ref()) {
                    break;
                }
                ready?.clear_ready();
            }
            _ended = init.readable() => break,
            // Without it nothing inside can be reached: the shim reports the end of the proxy.
            _ended = helper.readable() => return Err(Errno::CHILD.into()),
        }
    }
    // A command may end right after its last answer: what it sent is passed on.
    let limit = Duration::from_millis(DRAIN_TIMEOUT_MS);
    let _drained = timeout(limit, proxy.senders.drained()).await.is_ok();
    proxy.log.write_summary();
    Ok(())
}

/// Handles all pending messages of the shim; false when it is gone.
fn handle_messages(inbound: &Rc<InboundForwarder>, control: &OwnedFd) -> bool {
    let mut buffer = [0; crate::client::MESSAGE_BYTES];
    loop {
        match seqpacket::receive(control, &mut buffer, ReceiveMode::NonBlocking) {
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
            Ok(packet) if packet.len == 0 => return false,
            Ok(packet) => {
                let (Ok(request), Ok(reply_to)) =
                    (decode(&buffer[..packet.len]), control.try_clone())
                else {
                    continue;
                };
                handle_request(inbound, request, reply_to);
            }
        }
    }
}

fn handle_request(inbound: &Rc<InboundForwarder>, request: EgressRequest, reply_to: OwnedFd) {
    let proxy = inbound.proxy();
    let task = Rc::clone(inbound);
    match request {
        EgressRequest::Setup { .. } | EgressRequest::Namespace => {}
        EgressRequest::Unforward { host_port } => inbound.unforward(host_port),
        EgressRequest::Count { serial } => {
            let counts = proxy.log.counts();
            send(&reply_to, &EgressEvent::Counts { serial, counts }, None);
        }
        EgressRequest::Connect { serial, port } => {
            proxy.tasks.spawn_local(async move {
                let connected = task.connect(port).await.and_then(|stream| {
                    let socket = stream.into_std().map_err(|error| errno_of(&error))?;
                    Ok(OwnedFd::from(socket))
                });
                match connected {
                    Ok(socket) => {
                        send(&reply_to, &EgressEvent::Connected { serial }, Some(&socket));
                    }
                    Err(errno) => send_refused(&reply_to, serial, errno),
                }
            });
        }
        EgressRequest::Forward {
            serial,
            host_port,
            inside_port,
        } => {
            proxy.tasks.spawn_local(async move {
                match task.forward(host_port, inside_port).await {
                    Ok(host_port) => send(
                        &reply_to,
                        &EgressEvent::Forwarding { serial, host_port },
                        None,
                    ),
                    Err(errno) => send_refused(&reply_to, serial, errno),
                }
            });
        }
    }
}

fn send_refused(reply_to: &OwnedFd, serial: u32, errno: Errno) {
    let errno = errno.raw_os_error();
    send(reply_to, &EgressEvent::Refused { serial, errno }, None);
}

/// Sends a message to the shim; one that does not read misses it.
fn send(control: &OwnedFd, message: &EgressEvent, socket: Option<&OwnedFd>) {
    if let Ok(bytes) = encode(message) {
        let _sent = seqpacket::send(control.as_fd(), &bytes, socket.map(AsFd::as_fd));
    }
}

/// Accepts connections at one port of the proxy namespace.
async fn accept(proxy: Rc<EgressProxy>, listener: TcpListener) {
    loop {
        let Some((stream, _)) = proxy.accept(&listener).await else {
            continue;
        };
        let Ok(target) = stream.local_addr() else {
            continue;
        };
        let task = Rc::clone(&proxy);
        if target == SocketAddr::from((NAMESERVER, dns::PORT)) {
            match Arc::clone(&proxy.dns_permits).try_acquire_owned() {
                Ok(permit) => {
                    proxy.tasks.spawn_local(async move {
                        let _permit = permit;
                        dns_server::serve_tcp(task, stream).await;
                    });
                }
                Err(_) => reset(&stream),
            }
            continue;
        }
        // One connection per port waits here; the others wait in the kernel.
        let Ok(permit) = Arc::clone(&proxy.permits).acquire_owned().await else {
            return;
        };
        proxy.tasks.spawn_local(async move {
            let _permit = permit;
            outbound::handle_connection(task, stream, target).await;
        });
    }
}
